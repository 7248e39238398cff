import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStop: ({ response }) => (response.includes("continued") ? {} : { decision: "block" }),
  },
});
