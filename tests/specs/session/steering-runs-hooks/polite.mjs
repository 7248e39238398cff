import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onUserPromptSubmitted: ({ prompt }) => (prompt === "shut up" ? { decision: "block", reason: "be polite" } : { modifiedPrompt: `${prompt}, please` }),
  },
});
