import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPostToolUse: ({ toolResult }) => ({
      modifiedResult: { textResultForLlm: `not good enough: ${toolResult.textResultForLlm}`, resultType: "failure" },
    }),
  },
});
