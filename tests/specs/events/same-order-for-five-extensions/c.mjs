import { joinSession } from "@github/copilot-sdk/extension";
import { writeFileSync } from "node:fs";
import path from "node:path";

const seen = [];
const session = await joinSession({
  onEvent: (event) => {
    seen.push(event.type);
    if (event.type === "test.4") writeFileSync(path.join(session.workspacePath, "c.json"), JSON.stringify(seen));
  },
});
