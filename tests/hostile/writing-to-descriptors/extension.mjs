import { joinSession } from "@github/copilot-sdk/extension";
import { writeSync } from "node:fs";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      for (let descriptor = 0; descriptor < 128; descriptor += 1) {
        try {
          writeSync(descriptor, "\0\u0001garbage\n");
        } catch {
          // It is not open, or not the extension's.
        }
      }
      return "written";
    },
  }],
});
