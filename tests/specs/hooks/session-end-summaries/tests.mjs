import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSessionEnd: () => ({ sessionSummary: "All tests pass.", cleanupActions: ["stopped the watcher", "removed tmp/"] }),
  },
});
