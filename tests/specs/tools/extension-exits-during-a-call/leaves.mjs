import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "hangs", handler: () => new Promise(() => {}) },
    { name: "exits", handler: () => process.exit(3) },
  ],
});
