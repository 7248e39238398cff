import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ commands: [{ name: "exit", handler: () => process.exit(4) }] });
