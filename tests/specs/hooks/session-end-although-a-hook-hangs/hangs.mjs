import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSessionEnd: () => new Promise(() => {}),
  },
});
