import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "fill",
    description: "Fills the queue",
    handler: async () => {
      const attempts = await Promise.allSettled(Array.from({ length: 102 }, (_, n) => session.send(`message ${n}`)));
      const refused = attempts.filter(({ status }) => status === "rejected");
      const { items } = await session.rpc.queue.pendingItems();
      await session.rpc.queue.clear();
      const id = await session.send("there is room again");
      return { waiting: items.length, refused: refused.length, reason: refused[0].reason.message, sent: typeof id };
    },
  }],
});
