import * as index from "@github/copilot-sdk";
import { joinSession } from "@github/copilot-sdk/extension";

const other = await import("@tenon/sdk");
await joinSession({
  tools: [{ name: "plain", handler: () => `${index.joinSession === joinSession} ${other.defineTool === index.defineTool}` }],
});
