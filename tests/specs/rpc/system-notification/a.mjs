import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "tell",
    description: "Tells",
    handler: async () => {
      const { eventId } = await session.rpc.sendSystemNotification({ content: "the build is done" });
      await session.rpc.sendSystemNotification({ content: "a job ended", kind: { type: "job", id: 7 } });
      const { id } = (await session.getEvents()).find(({ type }) => type === "system.notification");
      return [id === eventId, await session.rpc.sendSystemNotification({}).catch(({ message }) => message)];
    },
  }],
});
