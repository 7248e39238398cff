import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      Object.defineProperty(Error.prototype, "message", { get() { throw 1; } });
      Error.prepareStackTrace = () => {
        throw 2;
      };
      Object.defineProperty(Error.prototype, "stack", { get() { throw 3; } });
      return "tampered";
    },
  }],
});
