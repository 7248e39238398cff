import { joinSession } from "@github/copilot-sdk/extension";

const types = [];
let heardLast;
const last = new Promise((resolve) => (heardLast = resolve));

await joinSession({
  onEvent: ({ type }) => {
    // It also says how loading goes, which may still be the case.
    if (type !== "session.extensions_loaded") types.push(type);
    if (type === "test.passing") heardLast();
    if (type === "test.custom") throw new Error("not this one");
  },
  tools: [{
    name: "heard",
    handler: async () => {
      await last;
      return types.slice(types.indexOf("session.start"), types.indexOf("test.passing") + 1).join("\n");
    },
  }],
});
