import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      for (let turn = 0; turn < 12; turn += 1) {
        const end = performance.now() + 50;
        while (performance.now() < end) {}
        await new Promise((resolve) => setImmediate(resolve));
      }
      return "finished";
    },
  }],
});
