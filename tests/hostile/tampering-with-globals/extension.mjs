import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      for (const name of Object.getOwnPropertyNames(globalThis)) {
        try {
          Object.defineProperty(globalThis, name, { get() { throw new Error(`${name} is gone`); } });
        } catch {
          // It cannot be replaced.
        }
      }
      return "tampered";
    },
  }],
});
