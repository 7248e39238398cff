import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPostToolUse: ({ toolResult }) => console.log(`after: ${toolResult.textResultForLlm}`),
    onPostToolUseFailure: ({ error }) => console.log(`failed: ${error}`),
  },
});
