import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onErrorOccurred: ({ error }) => (error === "b" ? { errorHandling: "retry", retryCount: 3 } : undefined),
  },
});
