import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  onUserInputRequest: () => {
    throw new Error("cannot add");
  },
});
