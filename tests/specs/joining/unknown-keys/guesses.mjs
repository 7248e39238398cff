import { defineFactory, joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tool: [{ name: "misspelt" }],
  onPreToolUse: () => {},
  tools: [{ name: "works", handler: () => "all the same" }],
  onMcpAuthRequest: () => {
    throw new Error("never called");
  },
  factories: [defineFactory({ meta: { name: "f", description: "Never run", phases: [] }, run: () => {} })],
});
