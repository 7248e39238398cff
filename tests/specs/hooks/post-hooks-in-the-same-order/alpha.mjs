import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPostToolUse: ({ toolResult }) => ({
      modifiedResult: `${toolResult.textResultForLlm}, alpha`,
      additionalContext: "alpha was here",
    }),
  },
});
