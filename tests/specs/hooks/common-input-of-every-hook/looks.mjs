import { joinSession } from "@github/copilot-sdk/extension";

const NAMES = [
  "onSessionStart", "onUserPromptSubmitted", "onUserPromptTransformed", "onPreToolUse", "onPreMcpToolCall", "onPostToolUse",
  "onPostToolUseFailure", "onAgentStop", "onErrorOccurred", "onSubagentStart", "onSubagentStop", "onSessionEnd",
];

function look(name) {
  return (input, invocation) => {
    const isNow = input.timestamp instanceof Date && Math.abs(Date.now() - input.timestamp) < 60_000;
    const sameSession = [input.sessionId, invocation.sessionId].every((id) => id === session.sessionId);
    console.log(`${name}: ${sameSession} ${isNow} ${input.workingDirectory} ${input.cwd}`);
  };
}

const session = await joinSession({ hooks: Object.fromEntries(NAMES.map((name) => [name, look(name)])) });
