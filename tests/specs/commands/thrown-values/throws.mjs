import { joinSession } from "@github/copilot-sdk/extension";

const things = { error: new TypeError("of the wrong type"), text: "only a text" };

await joinSession({
  commands: [{
    name: "throws",
    handler: ({ args }) => {
      if (args === "rejection") return Promise.reject(new Error("later"));
      if (args in things) throw things[args];
      return "what it returns is not looked at";
    },
  }],
});
