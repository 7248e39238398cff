import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "write",
    handler: async () => {
      try {
        await session.rpc.workspaces.createFile({ path: "long.txt", content: "x".repeat(16 * 1024 * 1024 + 1) });
        return "written";
      } catch (error) {
        return error.message;
      }
    },
  }],
});
