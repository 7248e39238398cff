import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const end = performance.now() + 150;
      while (performance.now() < end) {}
      return "finished";
    },
  }],
});
