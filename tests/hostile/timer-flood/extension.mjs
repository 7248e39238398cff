import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      for (let timer = 0; timer < 1000; timer += 1) setInterval(() => {}, 0);
      return "armed";
    },
  }],
});
