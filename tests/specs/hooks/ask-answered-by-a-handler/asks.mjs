import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: () => ({ permissionDecision: "ask", permissionDecisionReason: "it is Friday" }),
  },
});
