import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: () => ({ additionalContext: "It is broken." }),
  },
});
