import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const all = [];
      for (;;) all.push(new Uint8Array(new SharedArrayBuffer(1 << 20)).fill(1));
    },
  }],
});
