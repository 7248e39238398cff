import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const again = () => setImmediate(again);
      again();
      return "armed";
    },
  }],
});
