import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({ hooks: { onSessionEnd: ({ reason }) => console.log(`onSessionEnd: ${reason}`) } });
session.on("session.shutdown", ({ data }) => console.log(`session.shutdown: ${data.shutdownType}, ${data.errorReason}`));
