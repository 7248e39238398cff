import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const { port1 } = new MessageChannel();
      const message = new Uint8Array(4_000_000).fill(1);
      for (;;) {
        port1.postMessage(message);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  }],
});
