import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    },
  }],
});
