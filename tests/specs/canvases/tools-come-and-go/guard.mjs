import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onPreToolUse: ({ toolName }) => ({ permissionDecision: "deny", permissionDecisionReason: `no ${toolName}` }) } });
