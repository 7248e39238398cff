import { joinSession } from "@github/copilot-sdk/extension";

async function* forever() {
  for (;;) yield 1;
}

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      for await (const _ of forever()) {}
    },
  }],
});
