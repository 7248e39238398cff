import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolArgs }) => ({ permissionDecision: toolArgs.decision, modifiedArgs: { changed: true } }),
  },
});
