import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ tools: [{ name: "gives", handler: (args) => args }] });
