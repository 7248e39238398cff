import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onErrorOccurred: ({ error, errorContext, recoverable }) => console.log(`${error}: ${errorContext} ${recoverable}`),
  },
});
