import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      let value = "bomb";
      for (let depth = 0; depth < 40; depth += 1) value = [value, value];
      return value;
    },
  }],
});
