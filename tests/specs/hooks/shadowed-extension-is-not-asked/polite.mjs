import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt}, says the repository's` }),
  },
});
