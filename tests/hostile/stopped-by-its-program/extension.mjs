import { spawn } from "node:child_process";
import { joinSession } from "@github/copilot-sdk/extension";

const script = 'echo $$ >> pids; kill -STOP $PPID; for i in 1 2 3 4 5 6; do sleep 1000 & echo $! >> pids; done; wait';

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      spawn("sh", ["-c", script], { stdio: "ignore" });
      await new Promise(() => {});
    },
  }],
});
