import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onAgentStop: { failClosed: true } } });
