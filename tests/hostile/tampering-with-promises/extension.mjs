import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      Promise.prototype.then = () => {};
      Promise.prototype.catch = () => {};
      Promise.resolve = () => {};
      globalThis.Promise = function () {};
      return "tampered";
    },
  }],
});
