import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: () => ({ additionalContext: "three before" }),
    onPostToolUse: () => ({ additionalContext: "three after" }),
  },
});
