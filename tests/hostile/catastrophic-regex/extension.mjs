import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      return /^(a+)+$/.test("a".repeat(60) + "!");
    },
  }],
});
