import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => ({ modifiedArgs: toolArgs.use }),
  },
});
