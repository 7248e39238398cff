import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "same", handler: () => "the repository's" }] });
