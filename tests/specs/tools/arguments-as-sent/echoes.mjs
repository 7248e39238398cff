import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "echo",
    handler: (args, invocation) =>
      `${JSON.stringify(args)} ${args === invocation.arguments} ${arguments_(args)} ${{}.polluted}`,
  }],
});

function arguments_(args) {
  return args === null ? "null" : Array.isArray(args) ? "array" : typeof args;
}
