import { joinSession } from "@github/copilot-sdk/extension";
import fs from "node:fs";
import { Worker } from "node:worker_threads";

/** Fewer would mean that the walk does not find what it looks for. */
const FEWEST = 2500;

/** Functions of one attack, so that it is answered on a busy machine, too. */
const AT_A_TIME = 300;

/** Workers of one attack that an error which nobody can catch ends on the way. More would be a walk that does not get on. */
const MOST_WORKERS = 50;

/** The number at the end of a file, or nothing if it is not there. */
function numberIn(file) {
  if (!fs.existsSync(file)) return undefined;
  return Number.parseInt(fs.readFileSync(file, "utf8").split("\n").at(-2), 10);
}

/** How many functions a worker has found; `undefined` if it ended on the way. */
function walked(workerData) {
  const worker = new Worker(new URL("./worker.mjs", import.meta.url), { workerData });
  return new Promise((resolve) => {
    worker.on("message", (message) => {
      if (Number.isInteger(message?.total)) resolve(message.total);
    });
    worker.on("error", () => undefined);
    worker.on("exit", () => resolve(undefined));
  }).finally(() => worker.terminate());
}

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const begin = numberIn("done") ?? 0;
      const to = begin + AT_A_TIME;
      let total;
      for (let count = 0; total === undefined; count += 1) {
        if (count === MOST_WORKERS) throw new Error(`broke: it stands at ${numberIn("place")}`);
        // Behind the function at which the last worker was ended. Methods of what was made come after all functions.
        const from = (numberIn("place") ?? begin - 1) + 1;
        if (from > to) break;
        total = await walked({ from, to });
      }
      fs.writeFileSync("done", `${to}\n`);
      fs.rmSync("place", { force: true });
      if (total < FEWEST) throw new Error(`broke: ${total} functions are all that was found`);
      if (total <= to) console.log("walked to the end");
      return "held";
    },
  }],
});
