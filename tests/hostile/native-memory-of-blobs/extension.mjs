import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const all = [];
      for (;;) {
        all.push(new Blob([new Uint8Array(8_000_000).fill(1)]));
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  }],
});
