import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onUserInputRequest: async (request, { sessionId }) => {
    console.log(`${JSON.stringify(request)} ${sessionId === session.sessionId}`);
    if (request.choices?.includes("blue")) return { answer: "blue", wasFreeform: false };
  },
});
