import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "finish", description: "Ends the turn", isTerminal: true, handler: ({ value }) => value },
    { name: "reject", description: "Says no", handler: () => ({ textResultForLlm: "the person said no", resultType: "rejected" }) },
  ],
});
