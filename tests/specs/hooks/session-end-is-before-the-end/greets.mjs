import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "greet", description: "Greets", skipPermission: true, handler: () => "goodbye" }] });
