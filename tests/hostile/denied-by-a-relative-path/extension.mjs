import { joinSession } from "@github/copilot-sdk/extension";
import fs from "node:fs";
import { spawnSync } from "node:child_process";

// Whether a command succeeds; one that is not there does not.
const does = (program, ...words) => spawnSync(program, words).status === 0;

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const file = ".github/extensions/culprit/key.txt";
      const tries = [
        () => fs.readFileSync(file),
        () => does("cat", file),
        () => does("sh", "-c", `cd .github && cat extensions/culprit/key.txt`),
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
