import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({ onUserInputRequest: ({ question }) => console.log(question) });
