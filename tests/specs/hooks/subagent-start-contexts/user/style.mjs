import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStart: ({ agentName }) => ({ additionalContext: `Be brief, ${agentName}.` }),
  },
});
