import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: async () => {
      throw new Error("not today");
    },
  },
});
