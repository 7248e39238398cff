import { joinSession } from "@github/copilot-sdk/extension";
import { spawnSync } from "node:child_process";

// Whether a command succeeds; one that is not there does not.
const does = (program, ...words) => spawnSync(program, words).status === 0;

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const shell = (command) => does("sh", "-c", command);
      const tries = [
        () => shell(`echo 500 > /proc/${process.ppid}/oom_score_adj`),
        () => shell(": >> /proc/sys/kernel/core_pattern"),
        () => shell(": >> /proc/sys/vm/drop_caches"),
        () => shell(": >> /sys/power/state"),
        () => !does("grep", "-q", "^CapEff:.0000000000000000$", `/proc/${process.pid}/status`),
      ];
      for (const attempt of tries) {
        try {
          if (!attempt()) continue;
        } catch {
          continue;
        }
        throw new Error(`broke: ${attempt}`);
      }
      return "held";
    },
  }],
});
