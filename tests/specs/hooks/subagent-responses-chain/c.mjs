import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStop: ({ response }) => console.log(response),
  },
});
