import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{ name: "look", description: "Looks", handler: async () => (await session.rpc.extensions.list()).extensions.map((extension) => JSON.stringify(extension)).join("\n") }],
});
