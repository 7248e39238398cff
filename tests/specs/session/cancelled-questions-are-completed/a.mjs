import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "t", handler: () => new Promise(() => {}) }] });
