import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => ({ modifiedArgs: { command: `${toolArgs.command} -k` } }),
    onPostToolUseFailure: ({ toolName, toolArgs, error }) => {
      console.log(`${toolName} ${JSON.stringify(toolArgs)}: ${error}`);
      return { additionalContext: "clean the cache" };
    },
  },
});
