import { convertMcpCallToolResult } from "@github/copilot-sdk";
import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [
    { name: "raw", handler: (answer) => answer },
    { name: "converts", handler: (answer) => convertMcpCallToolResult(answer) },
  ],
});
