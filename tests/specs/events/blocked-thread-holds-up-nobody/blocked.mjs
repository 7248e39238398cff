import { joinSession } from "@github/copilot-sdk/extension";
import { existsSync } from "node:fs";
import path from "node:path";

const session = await joinSession();
session.on("test.a", ({ data }) => {
  // Until the other one has seen the second event.
  while (!existsSync(path.join(session.workspacePath, "seen-2")));
  console.log(`freed after ${data.n}`);
  if (data.n === 2) session.log("freed");
});
