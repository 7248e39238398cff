import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "view", handler: () => "" }] });
