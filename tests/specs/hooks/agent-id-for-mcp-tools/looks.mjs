import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreMcpToolCall: ({ toolName, agentId }) => console.log(`${toolName}: ${agentId}`),
  },
});
