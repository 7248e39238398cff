import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "gives", description: "Returns its argument", handler: ({ value }) => value },
    { name: "gives_nothing", description: "Returns nothing", handler: () => {} },
    {
      name: "throws",
      description: "Throws",
      handler: async ({ what }) => {
        if (what === "text") throw "only a text";
        throw new RangeError("out of range");
      },
    },
  ],
});
