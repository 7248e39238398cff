import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => ({ modifiedArgs: { name: `${toolArgs.name} ` } }),
    onPostToolUse: ({ toolResult }) => ({
      modifiedResult: { ...toolResult, textResultForLlm: `<${toolResult.textResultForLlm}>` },
      additionalContext: "greetings are quoted",
    }),
  },
});
