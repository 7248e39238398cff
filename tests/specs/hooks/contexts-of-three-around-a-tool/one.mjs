import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: () => ({ additionalContext: "one before" }),
    onPostToolUse: () => ({ additionalContext: "one after" }),
  },
});
