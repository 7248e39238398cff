import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ hooks: { onPostToolUse: () => new Promise(() => {}) } });
