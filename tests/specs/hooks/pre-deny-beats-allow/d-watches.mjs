import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onPreToolUse: ({ toolArgs }) => console.log(toolArgs.command) } });
