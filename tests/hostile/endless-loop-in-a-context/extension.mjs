import { joinSession } from "@github/copilot-sdk/extension";
import vm from "node:vm";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      vm.runInNewContext("for (;;) {}");
    },
  }],
});
