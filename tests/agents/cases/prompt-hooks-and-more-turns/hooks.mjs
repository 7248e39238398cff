import { joinSession } from "@github/copilot-sdk/extension";

let stops = 0;
let sent = false;
const session = await joinSession({
  hooks: {
    onSessionStart: () => ({ additionalContext: "a session of tests" }),
    onUserPromptSubmitted: ({ prompt }) => ({ modifiedPrompt: `${prompt}\n@say and this`, additionalContext: "be kind" }),
    onAgentStop: () => {
      stops += 1;
      if (stops === 1) return { decision: "block", reason: "@say once more" };
    },
  },
});
session.on("session.idle", () => {
  if (sent) return;
  sent = true;
  session.send({ prompt: "@say sent by an extension" });
});
