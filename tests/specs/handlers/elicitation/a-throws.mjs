import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onElicitationRequest: ({ message }) => {
    if (message === "Size?") throw new Error("no idea");
  },
});
