import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks back",
    handler: async () => {
      const events = await session.getEvents();
      const place = events.findIndex(({ type }) => type === "session.resume");
      const { data, parentId } = events[place];
      return {
        said: events.find(({ type }) => type === "user.message").data.content,
        before: place,
        eventCount: data.eventCount,
        follows: events[place - 1].type,
        chained: events[place - 1].id === parentId,
        context: data.context,
      };
    },
  }],
});
