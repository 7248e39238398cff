import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onPreToolUse: () => ({ additionalContext: "be careful" }), onPostToolUse: () => {} } });
