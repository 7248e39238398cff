import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "later", description: "Is loaded when it is needed", defer: "auto", handler: () => "" },
    { name: "typed", description: "Has a schema", parameters: { type: "object", properties: { n: { type: "number" } }, required: ["n"] }, metadata: { icon: "x" }, handler: () => "" },
  ],
});
