import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      const refuse = () => {
        throw new Error("do not touch");
      };
      throw new Proxy({}, { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse });
    },
  }],
});
