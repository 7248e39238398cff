import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSessionEnd: () => ({ sessionSummary: "One prompt." }),
  },
});
