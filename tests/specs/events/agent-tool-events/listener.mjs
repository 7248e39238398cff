import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("tool.execution_progress", ({ data }) => console.log(`${data.toolCallId}: ${data.progressMessage}`));
session.on("tool.execution_complete", ({ data }) => console.log(`${data.toolCallId}: ${data.success}`));
