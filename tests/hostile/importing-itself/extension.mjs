import { joinSession } from "@github/copilot-sdk/extension";
import * as self from "./extension.mjs";
import { even } from "./even.mjs";

export const name = "self";

await joinSession({
  tools: [{
    name: "attack",
    description: "Uses the cycles",
    handler: () => `${self.name} ${even(10)}`,
  }],
});
