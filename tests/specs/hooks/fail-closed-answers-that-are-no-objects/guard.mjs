import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onPreToolUse: { failClosed: true, handler: ({ toolArgs }) => toolArgs.answer } } });
