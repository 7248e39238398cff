import { joinSession } from "@github/copilot-sdk/extension";
import fs from "node:fs";

// As in isolate/src/limits.rs.
const MOST = 4096;

// They stay open after the answer, while the bystander works.
const open = [];

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const own = import.meta.filename;
      let refused;
      while (!refused && open.length <= MOST) {
        try {
          open.push(fs.openSync(own));
        } catch (error) {
          // No more: for this extension, not for others.
          refused = error;
        }
      }
      if (refused?.code !== "EMFILE") throw new Error(`broke: ${open.length} are open, ${refused}`);
      if (open.length < 100) throw new Error("broke: only few could be opened");
      return "held";
    },
  }],
});
