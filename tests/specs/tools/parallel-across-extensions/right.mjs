import { joinSession } from "@github/copilot-sdk/extension";

let resolve;
const otherIsThere = new Promise((met) => (resolve = met));

const session = await joinSession({
  onEvent: ({ type, data }) => {
    if (type === "session.info" && data.message === "left is there") resolve("met left");
  },
  tools: [{
    name: "right",
    handler: async () => {
      await session.log("right is there");
      return otherIsThere;
    },
  }],
});
