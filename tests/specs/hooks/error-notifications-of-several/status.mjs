import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onErrorOccurred: () => ({ userNotification: "The service has a bad day." }),
  },
});
