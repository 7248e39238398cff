import { existsSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
console.log(`${session.sessionId} ${session.sessionId === process.env.SESSION_ID}`);
console.log(`${session.workspacePath} ${existsSync(session.workspacePath)}`);
