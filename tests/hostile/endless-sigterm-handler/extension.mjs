import { joinSession } from "@github/copilot-sdk/extension";

process.on("SIGTERM", () => {
  for (;;) {}
});

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      return "here";
    },
  }],
});
