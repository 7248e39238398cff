import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "news", description: "Tells", skipPermission: true, handler: ({ about }) => `nothing about ${about}` }] });
