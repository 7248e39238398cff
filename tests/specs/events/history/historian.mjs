import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: { onSessionStart: ({ source }) => console.log(`started: ${source}`) },
  tools: [{
    name: "history",
    description: "Gives the types of all events",
    handler: async () => {
      const events = await session.getEvents();
      const messages = await session.getMessages();
      const linked = events.every((event, index) => event.parentId === (events[index - 1]?.id ?? null));
      return { types: events.map(({ type }) => type), linked, sameByOlderName: messages.length >= events.length };
    },
  }],
});
