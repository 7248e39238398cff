import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: {
    onPreToolUse: async ({ toolArgs }) => {
      await session.log(`about to run ${toolArgs.command}`, { level: "warning" });
      return { permissionDecision: "allow" };
    },
  },
});
