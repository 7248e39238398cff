import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSessionStart: () => ({ additionalContext: "Write short functions." }),
    onUserPromptSubmitted: () => ({ additionalContext: "It is broken." }),
  },
});
