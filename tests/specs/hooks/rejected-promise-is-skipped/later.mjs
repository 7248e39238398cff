import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: () => new Promise((_, reject) => setTimeout(() => reject(new Error("not tomorrow")), 1)),
  },
});
