import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStop: ({ agentName, stopReason, response }) => {
      console.log(`${agentName} ${stopReason}: ${response}`);
      return { modifiedResponse: `${response}, says a` };
    },
  },
});
