import { joinSession } from "@github/copilot-sdk/extension";
import fs from "node:fs";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const parent = process.ppid;
      const found = [];
      for (const name of ["environ", "mem", "maps", "root/etc/passwd", "cwd/.github", "fd"]) {
        const path = `/proc/${parent}/${name}`;
        try {
          if (name === "fd") fs.readdirSync(path);
          else fs.readFileSync(path);
          found.push(path);
        } catch {
          // As it should be.
        }
      }
      try {
        process.kill(parent, 0);
        found.push("a signal");
      } catch {
        // As it should be.
      }
      if (found.length) throw new Error(`broke: ${found}`);
      return "held";
    },
  }],
});
