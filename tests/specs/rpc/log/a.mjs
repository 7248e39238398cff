import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { eventId } = await session.rpc.log({ message: "a line", level: "warning", tip: "read it" });
      await session.rpc.log({ message: "for a moment", ephemeral: true });
      const found = (await session.getEvents()).filter(({ type }) => /^session\.(info|warning)$/.test(type));
      const refused = await Promise.all([{}, { message: 7 }, { message: "x", level: "loud" }].map((given) => session.rpc.log(given).catch(({ message }) => message)));
      return [found.map(({ id }) => id === eventId), ...refused];
    },
  }],
});
