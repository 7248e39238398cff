import { joinSession } from "@github/copilot-sdk/extension";
import { execSync } from "node:child_process";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      execSync("sleep 1");
      return "slept";
    },
  }],
});
