import { joinSession } from "@github/copilot-sdk/extension";

process.on("SIGTERM", () => {});
setInterval(() => {}, 10);

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      return "here";
    },
  }],
});
