import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      for (;;) {
        try {
          console.log({ flood: ["console", "flood"] });
        } catch {
          // Not even the end of the world stops it.
        }
      }
    },
  }],
});
