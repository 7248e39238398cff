import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks back",
    handler: async () => {
      const [events, messages] = [await session.getEvents(), await session.getMessages()];
      const fields = Object.keys(events[0]).sort().join(" ");
      events[0].data.n = 2;
      return { fields, same: messages.map(({ type }) => type), unchanged: messages[0].data, gone: events.some(({ ephemeral }) => ephemeral) };
    },
  }],
});
