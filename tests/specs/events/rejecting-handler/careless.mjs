import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ tools: [{ name: "alive", description: "Answers", handler: () => "still here" }] });

session.on("test.a", async ({ data }) => {
  if (data.n === 1) throw new Error("rejected");
  console.log(`first: ${data.n}`);
  await session.log("heard");
  await session.log("and went on");
});
session.on("test.a", ({ data }) => console.log(`second: ${data.n}`));
