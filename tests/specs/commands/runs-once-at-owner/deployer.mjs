import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "/deploy",
    description: "Deploys",
    handler: async (context) => {
      const { sessionId, ...rest } = context;
      await session.log(`${sessionId === session.sessionId} ${JSON.stringify(rest)}`);
    },
  }],
});
