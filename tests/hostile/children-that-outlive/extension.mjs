import { joinSession } from "@github/copilot-sdk/extension";
import { spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const child = spawn("sh", ["-c", "sleep 300 & echo $! >>pids; (sleep 300 & echo $! >>pids; wait) & wait"]);
      appendFileSync("pids", `${child.pid}\n`);
      while (readFileSync("pids", "utf8").trim().split("\n").length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
      return "started";
    },
  }],
});
