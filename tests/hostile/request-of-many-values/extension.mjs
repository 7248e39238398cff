import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const many = new Array(2_000_000).fill(0);
      return await session.log("x", { tip: many }).catch((error) => error.message);
    },
  }],
});
