import { joinSession } from "@github/copilot-sdk/extension";
import { closeSync } from "node:fs";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      for (let descriptor = 3; descriptor < 128; descriptor += 1) {
        try {
          closeSync(descriptor);
        } catch {
          // It is not open, or not the extension's.
        }
      }
      return "closed";
    },
  }],
});
