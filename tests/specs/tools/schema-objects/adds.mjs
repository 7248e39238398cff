import { defineTool } from "@github/copilot-sdk";
import { joinSession } from "@github/copilot-sdk/extension";

/** Like a schema of Zod: a class with much in it that is not JSON Schema. */
class NumbersSchema {
  _output = undefined;
  inner = { check: () => true };

  constructor(...names) {
    this.names = names;
  }

  toJSONSchema() {
    const properties = Object.fromEntries(this.names.map((name) => [name, { type: "number" }]));
    return { type: "object", properties, required: this.names };
  }
}

await joinSession({
  tools: [
    defineTool("add", {
      description: "Adds",
      parameters: new NumbersSchema("a", "b"),
      handler: ({ a, b }) => a + b,
    }),
    defineTool("now", { handler: () => "now" }),
  ],
});
