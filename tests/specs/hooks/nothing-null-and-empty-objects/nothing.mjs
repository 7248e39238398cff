import { joinSession } from "@github/copilot-sdk/extension";

const NAMES = [
  "onSessionStart", "onUserPromptSubmitted", "onUserPromptTransformed", "onPreToolUse", "onPreMcpToolCall", "onPostToolUse",
  "onPostToolUseFailure", "onAgentStop", "onErrorOccurred", "onSubagentStart", "onSubagentStop", "onSessionEnd",
];

await joinSession({ hooks: Object.fromEntries(NAMES.map((name) => [name, () => undefined])) });
