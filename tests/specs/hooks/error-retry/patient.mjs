import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onErrorOccurred: ({ error, errorContext, recoverable }) => {
      console.log(`${error} (${errorContext}, ${recoverable})`);
      if (recoverable) return { errorHandling: "retry", retryCount: 2, userNotification: `Trying again: ${error}` };
    },
  },
});
