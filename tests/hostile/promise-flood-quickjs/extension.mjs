import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const all = [];
      for (;;) all.push(new Promise((resolve) => setTimeout(resolve, 1e6)));
    },
  }],
});
