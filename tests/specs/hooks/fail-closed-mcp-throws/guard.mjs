import { joinSession } from "@github/copilot-sdk/extension";

function guard() {
  throw new Error("no trace");
}

await joinSession({ hooks: { onPreMcpToolCall: { handler: guard, failClosed: true } } });
