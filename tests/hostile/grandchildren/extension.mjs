import { joinSession } from "@github/copilot-sdk/extension";
import { spawn } from "node:child_process";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const script = "for i in 1 2 3 4 5 6; do sh -c 'for j in 1 2 3 4; do sleep 300 & echo $! >> pids; done; wait' & done; wait";
      const child = spawn("sh", ["-c", script]);
      await new Promise((resolve, reject) => child.on("close", resolve).on("error", reject));
      return "broke: they ended by themselves";
    },
  }],
});
