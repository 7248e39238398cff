import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => {
      if (prompt === "bad") return { decision: "block", reason: "it is bad" };
    },
  },
});
