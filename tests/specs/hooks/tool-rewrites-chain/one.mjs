import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => ({
      modifiedArgs: { name: toolArgs.name.replace(/^./, (letter) => letter.toUpperCase()) },
      additionalContext: "names are capitalised",
    }),
    onPostToolUse: ({ toolName, toolArgs, toolResult }) => {
      console.log(`after ${toolName} ${JSON.stringify(toolArgs)}: ${JSON.stringify(toolResult)}`);
      return { modifiedResult: `${toolResult.textResultForLlm}!` };
    },
    onPostToolUseFailure: ({ toolName, toolArgs, error }) => {
      console.log(`${toolName} ${JSON.stringify(toolArgs)} failed: ${error}`);
      return { additionalContext: "try it with a name" };
    },
  },
});
