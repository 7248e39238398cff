import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "starts_something",
    handler: () => {
      setTimeout(() => {
        throw new Error("nobody catches this");
      }, 0);
      return "started";
    },
  }],
});
