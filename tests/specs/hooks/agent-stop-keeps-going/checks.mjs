import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onAgentStop: ({ stopReason, stopHookActive, transcriptPath }) => {
      console.log(JSON.stringify({ stopReason, stopHookActive, transcriptPath }));
      if (!stopHookActive) return { decision: "block", reason: "Run the tests first" };
    },
  },
});
