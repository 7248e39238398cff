import { joinSession } from "@github/copilot-sdk/extension";

function guard() {
  throw new Error("cannot tell");
}
guard.failClosed = true;

await joinSession({ hooks: { onPreToolUse: { handler: guard, failClosed: false } } });
