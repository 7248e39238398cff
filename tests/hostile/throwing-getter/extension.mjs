import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      return {
        get member() {
          throw new Error("from the getter");
        },
      };
    },
  }],
});
