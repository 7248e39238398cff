import { joinSession } from "@github/copilot-sdk/extension";

process.on("exit", () => {
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
