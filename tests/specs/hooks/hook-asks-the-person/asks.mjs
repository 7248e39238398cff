import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: {
    onPreToolUse: async ({ toolArgs }) => ({
      permissionDecision: (await session.ui.confirm(`Run ${toolArgs.command}?`)) ? "allow" : "deny",
    }),
  },
});
