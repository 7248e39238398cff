import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({ hooks: { onUserPromptSubmitted: async ({prompt}) => { if (prompt === "steer") { await session.log("in hook"); await new Promise(r => setTimeout(r, 300)); await session.log("hook done"); } } } });
