import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "double",
    description: "Doubles",
    handler: ({ n }) => {
      if (typeof n !== "number") throw new Error("not a number");
      return { textResultForLlm: String(n * 2), resultType: "success", toolTelemetry: { properties: { fast: "yes" } } };
    },
  }],
});
