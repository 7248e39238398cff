import { joinSession } from "@github/copilot-sdk/extension";
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const errors = new Set();
      let started = 0;
      for (let number = 0; number < 100; number += 1) {
        try {
          const child = spawn("sleep", ["300"]);
          child.on("error", (error) => errors.add(error.message));
          if (!child.pid) continue;
          started += 1;
          appendFileSync("pids", `${child.pid}\n`);
        } catch (error) {
          errors.add(error.message);
        }
      }
      // What could not be started says so in the next turn.
      await new Promise((resolve) => setImmediate(resolve));
      return `${started} started: ${[...errors].join("; ")}`;
    },
  }],
});
