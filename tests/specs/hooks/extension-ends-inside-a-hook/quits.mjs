import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: async () => {
      process.exit(0);
    },
    onAgentStop: () => ({ decision: "block", reason: "never said" }),
  },
});
