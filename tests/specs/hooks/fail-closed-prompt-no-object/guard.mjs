import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onUserPromptSubmitted: { failClosed: true, handler: () => "block" } } });
