import { joinSession } from "@github/copilot-sdk/extension";

const NAMES = [
  "onSessionStart", "onUserPromptTransformed", "onPostToolUse", "onPostToolUseFailure", "onAgentStop", "onSubagentStart",
  "onSubagentStop", "onSessionEnd",
];

function fail() {
  throw new Error("broken");
}

await joinSession({ hooks: Object.fromEntries(NAMES.map((name) => [name, { handler: fail, failClosed: true }])) });
