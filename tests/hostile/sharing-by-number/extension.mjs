import { joinSession } from "@github/copilot-sdk/extension";
import { spawnSync } from "node:child_process";

// Whether a command succeeds; one that is not there does not.
const does = (program, ...words) => spawnSync(program, words).status === 0;

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const tries = [
        () => does("ipcmk", "-M", "4096"),
        () => does("ipcmk", "-Q"),
        () => does("ipcmk", "-S", "1"),
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
