import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{ name: "end", description: "Ends as told", handler: ({ as }) => ({ textResultForLlm: `it is a ${as}`, resultType: as }) }],
});
