import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{ name: "gives", handler: ({ error }) => ({ textResultForLlm: "for the model", resultType: "failure", error }) }],
});
