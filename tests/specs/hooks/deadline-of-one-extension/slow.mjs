import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: async ({ prompt }) => {
      await new Promise((resolve) => setTimeout(resolve, 150));
      return { modifiedPrompt: `${prompt} at last` };
    },
  },
});
