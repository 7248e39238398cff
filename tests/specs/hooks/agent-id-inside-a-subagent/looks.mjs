import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onPreToolUse: ({ toolName, agentId }) => console.log(`before ${toolName}: ${agentId}`),
    onPostToolUse: ({ toolName, agentId }) => console.log(`after ${toolName}: ${agentId}`),
    onPostToolUseFailure: ({ toolName, agentId }) => console.log(`after ${toolName} failed: ${agentId}`),
    onSubagentStart: ({ agentName, agentId, agentType }) => console.log(`${agentName} starts: ${agentId} ${agentType}`),
    onSubagentStop: ({ agentName, agentId, agentType }) => console.log(`${agentName} stops: ${agentId} ${agentType}`),
    onAgentStop: ({ agentId }) => console.log(`the agent stops: ${agentId}`),
  },
});
