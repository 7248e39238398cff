import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onAgentStop: ({ stopHookActive }) => (stopHookActive ? {} : { decision: "block" }),
  },
});
