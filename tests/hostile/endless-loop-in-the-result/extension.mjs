import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      return {
        toJSON() {
          for (;;) {}
        },
      };
    },
  }],
});
