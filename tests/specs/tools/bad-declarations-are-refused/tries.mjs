import { joinSession } from "@github/copilot-sdk/extension";

const fine = { name: "Good-name_2", description: "Fine", handler: () => "called" };

const lists = [
  [fine, { name: "has space" }],
  [{ name: "" }],
  [{ name: "dotted.name" }],
  [{ name: "straße" }],
  [fine, { ...fine, name: "other" }, { name: 5 }],
  [{ description: "nameless" }],
  [null],
  [{ ...fine, parameters: "text" }],
  fine,
];
for (const tools of lists) {
  try {
    await joinSession({ tools });
    console.log("joined");
  } catch (error) {
    console.log(error.message);
  }
}
await joinSession({ tools: [fine, { ...fine, name: "n".repeat(65) }] });
