import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "tool_search_tool",
    overridesBuiltInTool: true,
    handler: ({ query }, { availableTools }) => {
      const found = availableTools.filter(({ name, description }) => `${name} ${description}`.includes(query));
      return {
        textResultForLlm: found.map((tool) => JSON.stringify(tool)).join("\n"),
        resultType: "success",
        toolReferences: found.map(({ name }) => name),
      };
    },
  }],
});
