import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const nested = "[".repeat(1_000_000);
      const said = [];
      for (const attempt of [() => JSON.parse(nested), () => new Function(nested), () => new RegExp("(".repeat(1_000_000))]) {
        try {
          attempt();
          said.push("worked");
        } catch (error) {
          said.push(error.name);
        }
      }
      return said.join();
    },
  }],
});
