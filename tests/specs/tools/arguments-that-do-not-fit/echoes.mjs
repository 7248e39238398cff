import { joinSession } from "@github/copilot-sdk/extension";

const handler = (args) => JSON.stringify(args);

await joinSession({
  tools: [
    {
      name: "echo",
      parameters: { type: "object", properties: { path: { type: "string" }, count: { type: "number" } }, required: ["path"] },
      handler,
    },
    { name: "unchecked", parameters: { type: "nonsense" }, handler },
  ],
});
