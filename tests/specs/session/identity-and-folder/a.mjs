import { joinSession } from "@github/copilot-sdk/extension";
import { writeFileSync } from "node:fs";
import path from "node:path";

const session = await joinSession();
writeFileSync(path.join(session.workspacePath, "files", "a.txt"), `by a in ${session.sessionId}\n`);
