import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    {
      name: "weather",
      description: "Tells the weather",
      parameters: { type: "object", properties: { town: { type: "string" } } },
      defer: "auto",
      handler: (args, { availableTools }) => `rain, ${availableTools}`,
    },
    { name: "tides", description: "Tells the tides", handler: () => "low" },
  ],
});
