import { joinSession } from "@github/copilot-sdk/extension";
import { once } from "node:events";
import { Worker } from "node:worker_threads";

const idle = `require("node:worker_threads").parentPort.on("message", () => {});`;
const nested = `
  const { Worker, parentPort } = require("node:worker_threads");
  parentPort.on("message", () => {
    try {
      new Worker("", { eval: true });
      parentPort.postMessage("started");
    } catch (error) {
      parentPort.postMessage(error.message);
    }
  });
`;

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const workers = [new Worker(nested, { eval: true })];
      let refused;
      while (!refused && workers.length < 100) {
        try {
          workers.push(new Worker(idle, { eval: true }));
        } catch (error) {
          refused = error;
        }
      }
      if (!/can have at most 32 workers at a time/.test(refused?.message) || workers.length !== 32) {
        throw new Error(`broke: ${workers.length} workers, ${refused}`);
      }
      workers[0].postMessage("start one");
      const [said] = await once(workers[0], "message");
      if (!said.includes("32 workers at a time")) throw new Error(`broke: a worker ${said}`);
      try {
        new globalThis.Worker("data:application/javascript,", { type: "module" });
        throw new Error("broke: a web worker started");
      } catch (error) {
        if (!error.message.includes("32 workers at a time")) throw error;
      }
      await workers[1].terminate();
      // The thread of one that was terminated ends a little later.
      for (;;) {
        try {
          workers[1] = new Worker(idle, { eval: true });
          break;
        } catch {
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
      }
      await Promise.all(workers.map((worker) => worker.terminate()));
      return "held";
    },
  }],
});
