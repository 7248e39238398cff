import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      return String(new Array(2 ** 32 - 2).fill(0).length);
    },
  }],
});
