import { joinSession } from "@github/copilot-sdk/extension";

const look = (when) => ({ toolCallId, toolName, toolArgs, nativeToolName, nativeToolArgs }) =>
  console.log(`${when} ${toolCallId}: ${JSON.stringify({ toolName, toolArgs, nativeToolName, nativeToolArgs })}`);

await joinSession({
  hooks: { onPreToolUse: look("before"), onPostToolUse: look("after"), onPostToolUseFailure: look("failed") },
});
