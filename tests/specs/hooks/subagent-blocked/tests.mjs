import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSubagentStop: ({ response }) => {
      console.log(response);
      if (!response.includes("continued")) return { decision: "block", reason: "Where is it?" };
    },
  },
});
