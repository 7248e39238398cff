import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolName, toolArgs }) => {
      if (toolName === "bash" && /echo/.test(toolArgs.command)) {
        return { permissionDecision: "deny", permissionDecisionReason: "no echo" };
      }
    },
    onPostToolUse: ({ toolName }) => ({ additionalContext: `${toolName} was seen` }),
  },
  tools: [{ name: "count", description: "Counts letters", handler: ({ text }) => `${text.length}` }],
});
