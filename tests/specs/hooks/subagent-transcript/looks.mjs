import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStart: ({ transcriptPath }) => console.log(`starts: ${transcriptPath}`),
    onSubagentStop: ({ transcriptPath }) => console.log(`stops: ${transcriptPath}`),
  },
});
