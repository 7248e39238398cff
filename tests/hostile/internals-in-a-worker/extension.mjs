import { joinSession } from "@github/copilot-sdk/extension";
import { Worker } from "node:worker_threads";

// Everything but a function's text, so that both threads say the same of the same things.
const look = `
  const internals = Deno[Deno.internal];
  const names = Reflect.ownKeys(internals).map(String).sort();
  const bindings = [];
  for (const name of ["inspector", "contextify", "process_methods", "worker"]) {
    try {
      bindings.push([name, Object.keys(process.binding(name)).sort()]);
    } catch (error) {
      bindings.push([name, error.name]);
    }
  }
  const seen = { core: typeof internals.core, tenon: typeof internals.tenon, names, bindings };
`;

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const own = new Function(`${look} return seen;`)();
      const attack = `
        ${look}
        try { new internals.core.ops.BrowserWindow(); } catch {}
        require("node:worker_threads").parentPort.postMessage(seen);
      `;
      const worker = new Worker(attack, { eval: true });
      const seen = await new Promise((resolve, reject) => {
        worker.once("message", resolve);
        worker.once("error", reject);
        worker.once("exit", () => reject(new Error("broke: the worker ended")));
      });
      if (seen.core !== "undefined" || seen.tenon !== "undefined") {
        throw new Error(`broke: ${JSON.stringify(seen)}`);
      }
      // A flag by which node's modules know where they run.
      const more = seen.names.filter((name) => name !== "__isWorkerThread" && !own.names.includes(name));
      if (more.length) throw new Error(`broke: a worker sees ${more}`);
      if (JSON.stringify(seen.bindings) !== JSON.stringify(own.bindings)) {
        throw new Error(`broke: ${JSON.stringify(seen.bindings)} beside ${JSON.stringify(own.bindings)}`);
      }
      return "held";
    },
  }],
});
