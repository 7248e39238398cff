import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onAgentStop: ({ stopHookActive }) => {
      if (!stopHookActive) return { decision: "block", reason: "A test fails." };
    },
  },
});
