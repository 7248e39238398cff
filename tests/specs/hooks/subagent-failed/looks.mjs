import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStart: ({ agentName }) => console.log(`${agentName} starts`),
    onSubagentStop: ({ agentName }) => console.log(`${agentName} stops`),
    onErrorOccurred: () => console.log("error"),
  },
});
