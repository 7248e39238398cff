import { joinSession } from "@github/copilot-sdk/extension";

let tries = 0;
await joinSession({
  hooks: {
    onErrorOccurred: () => {
      tries += 1;
      return tries < 3 ? { errorHandling: "retry", retryCount: 5 } : { userNotification: `gave up after ${tries}` };
    },
  },
});
