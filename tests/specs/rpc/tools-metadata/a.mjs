import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{ name: "look", description: "Looks", handler: async () => (await session.rpc.tools.getCurrentMetadata()).tools.map((tool) => JSON.stringify(tool)).join("\n") }],
});
