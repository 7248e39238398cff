import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPostToolUse: ({ toolResult }) => ({
      modifiedResult: `${toolResult.textResultForLlm}, beta`,
      additionalContext: "beta was here",
    }),
  },
});
