import { joinSession } from "@github/copilot-sdk/extension";
import { execSync } from "node:child_process";
import { readFileSync } from "node:fs";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const places = {
        env: () => JSON.stringify(process.env),
        own: () => readFileSync("/proc/self/environ", "latin1"),
        thread: () => readFileSync("/proc/thread-self/environ", "latin1"),
        child: () => execSync("env").toString(),
        sibling: () => execSync("cat /proc/$PPID/environ").toString("latin1"),
      };
      const seen = Object.entries(places).filter(([, look]) => {
        try {
          return look().includes("hunter2-of-chaos");
        } catch {
          return false;
        }
      });
      return `seen in: ${seen.map(([name]) => name).join() || "no place"}`;
    },
  }],
});
