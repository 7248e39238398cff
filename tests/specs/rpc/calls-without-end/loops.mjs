import { joinSession } from "@github/copilot-sdk/extension";

let asked = 0;
const session = await joinSession({
  hooks: {
    onPreToolUse: async () => {
      asked += 1;
      try {
        await session.rpc.tools.execute({ toolName: "work", arguments: {} });
      } catch (error) {
        console.log(`after ${asked}: ${error.message}`);
      }
    },
  },
  tools: [{ name: "work", skipPermission: true, handler: () => "done" }],
});
