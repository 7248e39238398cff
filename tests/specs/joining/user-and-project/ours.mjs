import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "ours", handler: () => "the repository's" }] });
