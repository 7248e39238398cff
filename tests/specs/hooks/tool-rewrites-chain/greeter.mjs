import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "greet",
    description: "Greets somebody",
    parameters: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
    handler: ({ name }) => {
      if (!name.trim()) throw new Error("nobody to greet");
      return `Hello ${name}`;
    },
  }],
});
