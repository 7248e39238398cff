import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  onElicitationRequest: async (context, ...more) => {
    const { sessionId, ...rest } = context;
    console.log(`${JSON.stringify(rest)} ${sessionId === session.sessionId} ${more.length}`);
    if (rest.requestedSchema) return { action: "accept", content: { size: "large" } };
  },
});
