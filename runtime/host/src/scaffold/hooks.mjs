// __name__: __description__

import { joinSession } from "@github/copilot-sdk/extension";

// Before each tool call, the agent's own and those of extensions. No answer lets the call go on.
/** @type {import("@github/copilot-sdk").PreToolUseHandler} */
const guard = async ({ toolName, toolArgs }) => {
  const command = toolName === "bash" ? String(toolArgs?.command ?? "") : "";
  if (/\bgit\s+push\b.*\s(--force|-f)\b/.test(command)) {
    return {
      permissionDecision: "deny", // or "ask", or "allow"
      permissionDecisionReason: "Pushing with --force is not allowed here; use --force-with-lease.",
    };
  }
};
// A hook that throws or is late is skipped, and the call goes on. For a guard that must mean no.
guard.failClosed = true;

// After each call that succeeded.
/** @type {import("@github/copilot-sdk").PostToolUseHandler} */
const remind = async ({ toolName, toolArgs }) => {
  const file = String(toolArgs?.path ?? "");
  if ((toolName === "edit" || toolName === "create") && file.endsWith("package.json")) {
    return { additionalContext: "package.json has changed: bring the lock file up to date too." };
  }
};

// When a prompt was submitted, before the agent gets it.
/** @type {import("@github/copilot-sdk").UserPromptSubmittedHandler} */
const addDate = async ({ timestamp }) => ({
  additionalContext: `Today is ${new Date(timestamp).toISOString().slice(0, 10)}.`,
});

await joinSession({
  hooks: {
    onPreToolUse: guard,
    onPostToolUse: remind,
    onUserPromptSubmitted: addDate,
  },
});
