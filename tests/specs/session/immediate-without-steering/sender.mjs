import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "queue_up",
    description: "Queues prompts",
    handler: async () => {
      await session.send({ prompt: "has time", mode: "enqueue" });
      await session.send({ prompt: "in a hurry 1", mode: "immediate" });
      await session.send({ prompt: "in a hurry 2", mode: "immediate" });
      const { items } = await session.rpc.queue.pendingItems();
      return items.map(({ displayText }) => displayText);
    },
  }],
});
