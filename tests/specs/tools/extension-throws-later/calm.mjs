import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "calm", handler: () => "nothing happened" }] });
