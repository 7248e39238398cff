import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPostToolUse: ({ toolArgs }) => ({ modifiedResult: toolArgs.use }),
  },
});
