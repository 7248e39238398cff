import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const all = new Map();
      for (let number = 0; ; number += 1) all.set({ number }, { before: all.size, text: `entry ${number}` });
    },
  }],
});
