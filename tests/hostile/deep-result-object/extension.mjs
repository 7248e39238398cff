import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: () => {
      let value = [];
      for (let depth = 0; depth < 2_000; depth += 1) value = [value];
      return { textResultForLlm: "deep", resultType: "success", toolTelemetry: value };
    },
  }],
});
