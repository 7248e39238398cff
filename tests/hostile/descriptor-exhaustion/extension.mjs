import { joinSession } from "@github/copilot-sdk/extension";
import fs from "node:fs";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const own = import.meta.filename;
      const open = [];
      try {
        for (;;) open.push(fs.openSync(own));
      } catch {
        // No more: for this extension, not for others.
      }
      return open.length > 100 ? "held" : "broke: only few could be opened";
    },
  }],
});
