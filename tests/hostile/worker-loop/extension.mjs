import { joinSession } from "@github/copilot-sdk/extension";
import { Worker } from "node:worker_threads";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      new Worker("for (;;) {}", { eval: true });
      return new Promise(() => {});
    },
  }],
});
