import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSessionStart: ({ source, initialPrompt }) => {
      console.log(`starts: ${source} ${initialPrompt}`);
      return { additionalContext: "Write short functions." };
    },
    onUserPromptSubmitted: ({ prompt }) => console.log(`prompt: ${prompt}`),
  },
});
