import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{ name: "ends", handler: (args) => ({ textResultForLlm: `for the model: ${args.resultType}`, ...args }) }],
});
