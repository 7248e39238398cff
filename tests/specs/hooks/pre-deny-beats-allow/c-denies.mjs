import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => {
      if (toolArgs.command.startsWith("rm")) return { permissionDecision: "deny", permissionDecisionReason: "nothing is removed here" };
    },
  },
});
