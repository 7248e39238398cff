import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => {
      if (prompt === "deploy") return { decision: "block", reason: "not on Fridays", modifiedPrompt: "never sent" };
    },
  },
});
