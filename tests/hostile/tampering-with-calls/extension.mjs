import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      for (const name of ["call", "apply", "bind"]) {
        Function.prototype[name] = () => {
          throw new Error(`${name} is gone`);
        };
      }
      return "tampered";
    },
  }],
});
