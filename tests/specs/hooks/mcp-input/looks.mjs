import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreMcpToolCall: ({ serverName, toolName, arguments: args, toolCallId, _meta }) =>
      console.log(JSON.stringify({ serverName, toolName, args, toolCallId, _meta })),
    onPreToolUse: ({ toolName }) => console.log(`before ${toolName}`),
  },
});
