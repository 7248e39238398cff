import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "not on Fridays", additionalContext: "ask on Monday" }),
  },
});
