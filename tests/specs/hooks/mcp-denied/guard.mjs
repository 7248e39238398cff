import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: () => ({ permissionDecision: "deny", permissionDecisionReason: "no docs" }),
    onPreMcpToolCall: () => console.log("asked"),
  },
});
