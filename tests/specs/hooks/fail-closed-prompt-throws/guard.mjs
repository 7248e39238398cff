import { joinSession } from "@github/copilot-sdk/extension";

async function guard({ prompt }) {
  if (prompt === "secret") throw new Error("cannot tell");
}
guard.failClosed = true;

await joinSession({ hooks: { onUserPromptSubmitted: guard } });
