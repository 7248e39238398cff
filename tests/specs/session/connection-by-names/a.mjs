import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { sessionId, connection } = session;
      await connection.sendRequest("session.name.set", { sessionId, name: "Named" });
      const refused = await connection.sendRequest("session.fleet.start", { sessionId }).catch(({ message }) => message);
      const tier = await session.setAutoTier("fast").catch(({ message }) => message);
      return [await connection.sendRequest("name.get"), refused, tier];
    },
  }],
});
