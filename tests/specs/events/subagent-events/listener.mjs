import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
for (const type of ["started", "completed", "failed"]) {
  session.on(`subagent.${type}`, ({ data }) => console.log(`${type}: ${data.agentName} ${data.toolCallId} ${data.error ?? ""}`));
}
