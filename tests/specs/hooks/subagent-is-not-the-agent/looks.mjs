import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onAgentStop: () => console.log("agent"),
    onSubagentStop: () => console.log("sub-agent"),
  },
});
