import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      for (;;) {
        try {
          structuredClone({ get x() { for (;;); } });
        } catch {
          // Again.
        }
      }
    },
  }],
});
