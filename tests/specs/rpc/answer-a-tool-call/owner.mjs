import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "slow", description: "Never answers", handler: () => new Promise(() => {}) }] });
