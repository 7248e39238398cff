import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onAgentStop: () => console.log("agent stops"),
    onErrorOccurred: () => console.log("error"),
    onSessionEnd: ({ reason, finalMessage }) => console.log(`session ends: ${reason}, ${finalMessage}`),
  },
});
