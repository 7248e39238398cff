import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onErrorOccurred: ({ error }) => ({ userNotification: `Wait a minute: ${error}` }),
  },
});
