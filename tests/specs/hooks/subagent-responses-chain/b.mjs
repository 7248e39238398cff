import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStop: ({ response }) => ({ decision: "allow", modifiedResponse: `${response}, says b` }),
  },
});
