import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onUserPromptSubmitted: () => ({ decision: "block", reason: "not today" }) } });
