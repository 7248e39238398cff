import { existsSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";

const heard = [];

const joining = joinSession({
  tools: [{ name: "early", skipPermission: true, handler: () => "answered" }],
  onEvent: async ({ type, data }) => {
    if (type !== "session.info" || heard.push(data.message) !== 2) return;
    const session = await joining;
    console.log(`heard: ${heard.join(", ")}`);
    await session.log("both are done");
  },
});
// Nothing else of this extension runs until the other one has called the tool.
while (!existsSync("called")) {}
console.log("the tool was called");
await joining;
