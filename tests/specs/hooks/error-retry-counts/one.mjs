import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onErrorOccurred: ({ error }) => (error === "c" ? { errorHandling: "retry", retryCount: 0 } : { errorHandling: "retry" }),
  },
});
