import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "mine", handler: () => "the user's" }] });
