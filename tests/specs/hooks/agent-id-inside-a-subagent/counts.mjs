import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "count", description: "Counts", handler: () => "3" }] });
