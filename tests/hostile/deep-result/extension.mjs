import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      let value = [];
      for (let depth = 0; depth < 100_000; depth += 1) value = [value];
      return value;
    },
  }],
});
