import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "rich",
    handler: (args) => ({
      textResultForLlm: "for the model",
      resultType: "success",
      binaryResultsForLlm: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png", description: "a dot" }],
      sessionLog: "for the timeline",
      toolTelemetry: { metrics: { files: 3 }, properties: { kind: "x" } },
      toolReferences: ["one", "two"],
      ...args,
    }),
  }],
});
