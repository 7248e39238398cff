import { joinSession } from "@github/copilot-sdk/extension";
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      // Each keeps less than the limit. What is detached counts, too.
      for (let i = 0; i < 4; i += 1) {
        const { pid } = spawn("sh", ["-c", "head -c 120m /dev/zero | tail -c 120m | sleep 300"], { detached: true, stdio: "ignore" });
        appendFileSync("pids", `${pid}\n`);
      }
      await new Promise(() => {});
    },
  }],
});
