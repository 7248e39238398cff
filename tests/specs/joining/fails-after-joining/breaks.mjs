import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{ name: "short_lived", handler: () => "" }],
  commands: [{ name: "short", handler: () => {} }],
  hooks: { onPreToolUse: () => ({ permissionDecision: "deny" }) },
});
throw new Error("after joining");
