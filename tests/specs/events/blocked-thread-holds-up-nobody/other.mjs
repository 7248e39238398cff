import { joinSession } from "@github/copilot-sdk/extension";
import { writeFileSync } from "node:fs";
import path from "node:path";

const session = await joinSession();
session.on("test.a", ({ data }) => {
  console.log(`hears ${data.n}`);
  writeFileSync(path.join(session.workspacePath, `seen-${data.n}`), "");
});
