import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSessionStart: () => ({ additionalContext: 1 }),
    onUserPromptSubmitted: () => ({ modifiedPrompt: 1, additionalContext: ["a"], decision: true, suppressOutput: "yes" }),
    onUserPromptTransformed: () => ({ modifiedTransformedPrompt: { text: "a" } }),
    onPreToolUse: () => ({ additionalContext: {}, suppressOutput: 1 }),
    onPreMcpToolCall: () => ({ metaToUse: "a" }),
    onPostToolUse: () => ({ additionalContext: 1, suppressOutput: "no" }),
    onPostToolUseFailure: () => ({ additionalContext: true }),
    onAgentStop: () => ({ decision: "stop", reason: 1 }),
    onErrorOccurred: () => ({ errorHandling: "ignore", userNotification: 1, suppressOutput: 1 }),
    onSubagentStart: () => ({ additionalContext: 1 }),
    onSubagentStop: () => ({ decision: 1, modifiedResponse: ["a"] }),
    onSessionEnd: () => ({ sessionSummary: 1, cleanupActions: "all", suppressOutput: "yes" }),
  },
});
