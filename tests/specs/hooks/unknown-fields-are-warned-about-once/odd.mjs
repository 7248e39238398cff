import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt}!`, modifiedPromt: "a", colour: "red" }),
    onUserPromptTransformed: () => ({ colour: "red" }),
    onSessionStart: () => ({ modifiedConfig: { model: "other" } }),
  },
});
