import { joinSession } from "@github/copilot-sdk/extension";

const seen = new Set();

const handler = (args, { requestId, toolCallId, toolName, sessionId, ...rest }) => {
  const isNew = !seen.has(requestId);
  seen.add(requestId);
  return {
    requestId, isNew, toolCallId, toolName,
    here: sessionId === session.sessionId,
    agentId: rest.agentId,
    hasAgent: "agentId" in rest,
    hasTools: "availableTools" in rest,
  };
};

const session = await joinSession({ tools: [{ name: "tells", handler }, { name: "tells_too", handler }] });
