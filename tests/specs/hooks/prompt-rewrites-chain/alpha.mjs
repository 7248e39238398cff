import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: async ({ prompt }) => {
      await new Promise((resolve) => setTimeout(resolve, 1));
      return { modifiedPrompt: `${prompt}, and be brief`, additionalContext: "Tests run with make test." };
    },
  },
});
