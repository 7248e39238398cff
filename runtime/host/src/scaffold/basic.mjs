// __name__: __description__

import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    {
      name: "__tool__",
      // The model chooses by this sentence: say what the tool does, and when to use it.
      description: "Greets somebody. An example: replace it.",
      parameters: {
        type: "object",
        properties: { name: { type: "string", description: "Who to greet" } },
        additionalProperties: false,
      },
      // skipPermission: true, // for a tool that changes nothing: the person is not asked before each call
      handler: async (args) => `Hello, ${args?.name ?? "world"}! This is __name__.`,
    },
  ],
});
