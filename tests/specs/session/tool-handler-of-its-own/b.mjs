import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "other", description: "Another's", handler: () => "" }] });
