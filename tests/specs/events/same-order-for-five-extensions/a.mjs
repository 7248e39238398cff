import { joinSession } from "@github/copilot-sdk/extension";
import { writeFileSync } from "node:fs";
import path from "node:path";

const session = await joinSession({ tools: [{ name: "echo", description: "Says hello", handler: () => "hello" }] });
const seen = [];
session.on((event) => {
  seen.push(event.type);
  if (event.type === "test.4") writeFileSync(path.join(session.workspacePath, "a.json"), JSON.stringify(seen));
});
