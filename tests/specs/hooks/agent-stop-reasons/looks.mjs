import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onAgentStop: ({ stopReason }) => console.log(stopReason),
  },
});
