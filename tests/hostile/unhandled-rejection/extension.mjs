import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      Promise.reject(new Error("nobody caught me"));
      return new Promise(() => {});
    },
  }],
});
