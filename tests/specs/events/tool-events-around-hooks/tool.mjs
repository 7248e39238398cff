import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "echo", description: "Gives it back", handler: ({ text }) => text }] });
