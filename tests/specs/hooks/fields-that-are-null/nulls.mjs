import { joinSession } from "@github/copilot-sdk/extension";

const nulls = (...fields) => Object.fromEntries(fields.map((field) => [field, null]));

await joinSession({
  hooks: {
    onSessionStart: () => nulls("additionalContext"),
    onUserPromptSubmitted: () => nulls("modifiedPrompt", "additionalContext", "decision", "reason", "suppressOutput"),
    onUserPromptTransformed: () => nulls("modifiedTransformedPrompt"),
    onPreToolUse: () => nulls("permissionDecision", "permissionDecisionReason", "modifiedArgs", "additionalContext", "suppressOutput"),
    onPostToolUse: () => nulls("modifiedResult", "additionalContext", "suppressOutput"),
    onPostToolUseFailure: () => nulls("additionalContext"),
    onAgentStop: () => nulls("decision", "reason"),
    onErrorOccurred: () => nulls("errorHandling", "retryCount", "userNotification", "suppressOutput"),
    onSubagentStart: () => nulls("additionalContext"),
    onSubagentStop: () => nulls("decision", "reason", "modifiedResponse"),
    onSessionEnd: () => nulls("sessionSummary", "cleanupActions", "suppressOutput"),
  },
});
