import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "t", handler: ({c}) => c.repeat(3000) }] });
