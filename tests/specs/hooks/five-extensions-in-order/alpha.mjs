import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onPreToolUse: ({ toolArgs }) => ({ modifiedArgs: { seen: [...toolArgs.seen, "project:alpha"] } }) } });
