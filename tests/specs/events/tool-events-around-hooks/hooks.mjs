import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => (toolArgs.text === "forbidden"
      ? { permissionDecision: "deny", permissionDecisionReason: "a bad word" }
      : { modifiedArgs: { text: `${toolArgs.text}b` } }),
    onPostToolUse: ({ toolResult }) => ({ modifiedResult: { ...toolResult, textResultForLlm: `${toolResult.textResultForLlm}c` } }),
  },
});
