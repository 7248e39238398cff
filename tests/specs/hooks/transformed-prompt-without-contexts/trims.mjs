import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptTransformed: ({ transformedPrompt }) => ({ modifiedTransformedPrompt: transformedPrompt.split("\n")[0] }),
  },
});
