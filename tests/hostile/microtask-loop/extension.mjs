import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const again = () => Promise.resolve().then(again);
      return again();
    },
  }],
});
