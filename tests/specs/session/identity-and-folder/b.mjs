import { joinSession } from "@github/copilot-sdk/extension";
import { readdirSync } from "node:fs";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: () => ({ id: session.sessionId, sameInEnvironment: process.env.SESSION_ID === session.sessionId, path: session.workspacePath, files: readdirSync(`${session.workspacePath}/files`) }),
  }],
});
