import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  hooks: {
    onSessionEnd: (input) => {
      const { reason, finalMessage, error } = input;
      console.log(JSON.stringify({ reason, finalMessage, error }));
    },
  },
});
