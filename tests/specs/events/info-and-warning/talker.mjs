import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "note",
    description: "Notes something",
    handler: async () => {
      await session.log("a line", { url: "https://example.org", tip: "a tip" });
      await session.log("a warning", { level: "warning" });
      return { textResultForLlm: "noted", resultType: "success", sessionLog: "a line of a tool" };
    },
  }],
  hooks: {
    onSessionStart: () => {
      throw new Error("not today");
    },
    onUserPromptSubmitted: ({ prompt }) => (prompt === "blocked" ? { decision: "block", reason: "no such prompts" } : undefined),
    onErrorOccurred: () => ({ userNotification: "the model is away" }),
    onSessionEnd: () => ({ sessionSummary: "little was done", cleanupActions: ["closed the window"] }),
  },
});
