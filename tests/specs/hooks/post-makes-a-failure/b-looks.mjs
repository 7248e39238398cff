import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPostToolUse: ({ toolResult }) => console.log(`after: ${JSON.stringify(toolResult)}`),
    onPostToolUseFailure: ({ error }) => console.log(`failed: ${error}`),
  },
});
