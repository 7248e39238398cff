import { joinSession } from "@github/copilot-sdk/extension";

let resolve;
const otherIsThere = new Promise((met) => (resolve = met));

const session = await joinSession({
  onEvent: ({ type, data }) => {
    if (type === "session.info" && data.message === "right is there") resolve("met right");
  },
  tools: [{
    name: "left",
    handler: async () => {
      await session.log("left is there");
      return otherIsThere;
    },
  }],
});
