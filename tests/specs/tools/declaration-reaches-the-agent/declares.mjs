import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [
    {
      name: "full",
      description: "Says\neverything",
      parameters: {
        type: "object",
        properties: { path: { type: "string", description: "Where" }, depth: { type: "integer", minimum: 0, default: 1 } },
        required: ["path"],
        additionalProperties: false,
      },
      skipPermission: true,
      isTerminal: false,
      defer: "auto",
      metadata: { "vendor:level": 3, tags: ["a", null] },
      unknown: "is not passed on",
      handler: () => "",
    },
    { name: "never_deferred", description: 42, defer: "never", skipPermission: 0, handler: () => "" },
    {
      name: "lists",
      handler: async () => (await session.rpc.tools.getCurrentMetadata()).tools.map((tool) => JSON.stringify(tool)).join("\n"),
    },
  ],
});
