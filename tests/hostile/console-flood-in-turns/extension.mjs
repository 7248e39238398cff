import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      for (let turn = 0; turn < 20; turn += 1) {
        for (let line = 0; line < 1000; line += 1) console.log(`line ${line} of turn ${turn}`);
        await new Promise((resolve) => setImmediate(resolve));
      }
      return "told";
    },
  }],
});
