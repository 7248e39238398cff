import { joinSession } from "@github/copilot-sdk/extension";

const fine = { name: "fine", handler: () => console.log("ran") };

const lists = [
  [fine, { description: "nameless", handler: () => {} }],
  [{ ...fine, name: "" }],
  [{ ...fine, name: "/" }],
  [{ ...fine, name: "two words" }],
  [fine, { ...fine, name: "/fine" }],
  [null],
  fine,
];
for (const commands of lists) {
  try {
    await joinSession({ commands });
    console.log("joined");
  } catch (error) {
    console.log(error.message);
  }
}
await joinSession({ commands: [fine, { name: "silent", description: 5 }] });
