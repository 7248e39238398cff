import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptTransformed: ({ prompt, transformedPrompt }) => console.log(`${prompt} -> ${transformedPrompt}`),
  },
});
