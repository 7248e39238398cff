import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onPostToolUse: ({ toolName, toolResult }) => (toolName === "double" ? { modifiedResult: { ...toolResult, textResultForLlm: `twice: ${toolResult.textResultForLlm}` } } : undefined) } });
