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
      const server = net.createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
      await new Promise((resolve) => server.on("listening", resolve));
      const { port } = server.address();
      const reached = [];
      for (const [way, start] of Object.entries(ways)) {
        if (await start(port) === 0) reached.push(way);
      }
      // The extension itself may.
      await new Promise((resolve, reject) => net.connect(port, "127.0.0.1", resolve).on("error", reject));
      server.close();
      if (reached.length === Object.keys(ways).length) return "reached by all";
      if (reached.length > 0) throw new Error(`reached by ${reached}`);
      return "held";
    },
  }],
});
