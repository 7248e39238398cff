import { joinSession } from "@github/copilot-sdk/extension";

const NAMES = [
  "onSessionStart", "onUserPromptSubmitted", "onUserPromptTransformed", "onPreToolUse", "onPreMcpToolCall", "onPostToolUse",
  "onPostToolUseFailure", "onAgentStop", "onErrorOccurred", "onSubagentStart", "onSubagentStop", "onSessionEnd",
];

function fail(name) {
  return () => {
    throw new Error(`${name} is broken`);
  };
}

await joinSession({ hooks: Object.fromEntries(NAMES.map((name) => [name, fail(name)])) });
