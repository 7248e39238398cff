import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPostToolUse: ({ toolResult }) => ({
      modifiedResult: `${toolResult.textResultForLlm}, zulu`,
      additionalContext: "zulu was here",
    }),
  },
});
