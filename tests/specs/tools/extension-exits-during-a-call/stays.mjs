import { joinSession } from "@github/copilot-sdk/extension";

let otherLeft;
const left = new Promise((resolve) => (otherLeft = resolve));

await joinSession({
  onEvent: ({ type, data }) => {
    if (type === "session.extensions_loaded" && data.extensions.some(({ status }) => status === "failed")) otherLeft();
  },
  tools: [{
    name: "stays",
    handler: async () => {
      await left;
      return "still here";
    },
  }],
});
