import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const asked = Array.from({ length: 5000 }, () => session.rpc.name.get());
      const answers = await Promise.all(asked);
      return `${answers.length} answers`;
    },
  }],
});
