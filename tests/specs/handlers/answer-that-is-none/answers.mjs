import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ onUserInputRequest: () => "only a text", onElicitationRequest: () => ({ confirmed: true }) });
