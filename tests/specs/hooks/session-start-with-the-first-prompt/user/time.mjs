import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSessionStart: ({ source, initialPrompt }) => {
      console.log(`starts: ${source} ${initialPrompt}`);
      return { additionalContext: "It is Monday." };
    },
    onUserPromptSubmitted: ({ prompt }) => console.log(`prompt: ${prompt}`),
  },
});
