import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: () => ({ additionalContext: "two before" }),
    onPostToolUse: () => ({ additionalContext: "two after" }),
  },
});
