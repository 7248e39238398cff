import { joinSession } from "@github/copilot-sdk/extension";

const enabled = false;

await joinSession({
  hooks: {
    onUserPromptSubmitted: enabled && (() => ({ decision: "block" })),
    onPreToolUse: null,
    onPostToolUse: undefined,
    onAgentStop: () => console.log("stopped"),
  },
});
