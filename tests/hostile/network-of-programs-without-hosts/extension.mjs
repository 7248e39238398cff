import { joinSession } from "@github/copilot-sdk/extension";
import { spawn, spawnSync } from "node:child_process";
import net from "node:net";

const connect = (port) => `exec 3<>/dev/tcp/127.0.0.1/${port}`;

// Each way in which a program is started. The last is a program of a program.
const ways = {
  sync: (port) => spawnSync("bash", ["-c", connect(port)]).status,
  detached: (port) => status(spawn("bash", ["-c", connect(port)], { detached: true })),
  usual: (port) => status(spawn("bash", ["-c", connect(port)])),
  messages: (port) => status(spawn("bash", ["-c", connect(port)], { stdio: ["ignore", "ignore", "ignore", "ipc"] })),
  inside: (port) => status(spawn("sh", ["-c", `cd / && bash -c '${connect(port)}'; exit $?`])),
};

const status = (program) => new Promise((resolve, reject) => program.on("error", reject).on("close", resolve));

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      // Nothing listens there; who may ask for it is told so.
      const refused = spawnSync("bash", ["-c", connect(9)]);
      if (!`${refused.stderr}`.includes("Permission denied")) throw new Error(`asked for: ${refused.stderr}`);
      for (const [way, start] of Object.entries(ways)) {
        if (await start(9) === 0) throw new Error(`reached by ${way}`);
      }
      return "held";
    },
  }],
});
