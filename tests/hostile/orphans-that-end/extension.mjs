import { joinSession } from "@github/copilot-sdk/extension";
import { spawn } from "node:child_process";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      spawn("sh", ["-c", "echo $$ >> pids; while :; do (true &); done"], { stdio: "ignore" });
      for (;;);
    },
  }],
});
