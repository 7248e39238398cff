import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolName, toolArgs }) => {
      if (toolName === "bash" && /rm\s+-rf/.test(toolArgs.command)) {
        return { permissionDecision: "deny", permissionDecisionReason: "nothing is removed here" };
      }
    },
    onPostToolUse: ({ toolName }) => ({ additionalContext: `${toolName} was seen` }),
  },
  tools: [{ name: "count", description: "Counts letters", handler: ({ text }) => `${text.length}` }],
});
