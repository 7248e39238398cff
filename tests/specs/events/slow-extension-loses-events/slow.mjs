import { joinSession } from "@github/copilot-sdk/extension";
import { existsSync } from "node:fs";
import path from "node:path";

const session = await joinSession();
let titles = 0;
session.on("test.block", () => {
  session.log("blocked");
  while (!existsSync(path.join(session.workspacePath, "flooded")));
});
session.on("session.title_changed", () => (titles += 1));
session.on("session.warning", ({ data, ephemeral, parentId }) => {
  console.log(`after ${titles} titles: ${JSON.stringify(data)} ${ephemeral} ${parentId}`);
  session.log("told");
});
