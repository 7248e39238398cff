import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ commands: [{ name: "stay", handler: () => console.log("here") }] });
