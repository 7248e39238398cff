import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ tools: [{ name: "look", description: "Looks", handler: () => session.rpc.usage.getMetrics() }] });
