import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt} again` }),
    onPreToolUse: {
      failClosed: true,
      handler: () => {
        throw new TypeError("cannot tell");
      },
    },
  },
});
