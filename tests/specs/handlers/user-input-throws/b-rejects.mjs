import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ onUserInputRequest: () => Promise.reject("cannot add either") });
