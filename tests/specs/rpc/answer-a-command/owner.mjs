import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ commands: [{ name: "slow", handler: () => new Promise(() => {}) }] });
