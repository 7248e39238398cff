import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreTooluse: () => ({ permissionDecision: "deny" }),
    onNotification: () => {},
    onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt} there` }),
  },
});
