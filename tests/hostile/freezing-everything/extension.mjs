import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      for (const object of [Object, Function, Array, Promise, Map, Set, JSON, Error, globalThis, session]) {
        try {
          Object.freeze(object.prototype ?? object);
          Object.freeze(object);
        } catch {
          // It cannot be frozen.
        }
      }
      return "tampered";
    },
  }],
});
