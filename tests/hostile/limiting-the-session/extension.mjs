import { joinSession } from "@github/copilot-sdk/extension";
import { spawnSync } from "node:child_process";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const parent = String(process.ppid);
      const tries = [
        ["prlimit", "--pid", parent, "--nofile"],
        ["prlimit", "--pid", parent, "--cpu=1000000000:unlimited"],
        ["renice", "-n", "19", "-p", parent],
      ];
      for (const [program, ...words] of tries) {
        const { status, error } = spawnSync(program, words);
        // Where there is no such program nothing was tried; the sandbox has tests of its own for the calls.
        if (status === 0) throw new Error(`broke: ${program} ${words}`);
        if (error && error.code !== "ENOENT") throw error;
      }
      return "held";
    },
  }],
});
