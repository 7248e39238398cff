import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onErrorOccurred: () => console.log("error"),
    onAgentStop: () => console.log("stop"),
  },
});
