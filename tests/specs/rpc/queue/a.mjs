import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { queue } = session.rpc;
      const { messageId } = await session.rpc.send({ prompt: "one" });
      await session.rpc.send({ prompt: "two", displayPrompt: "(two)", agentMode: "plan" });
      const { items, steeringMessages } = await queue.pendingItems();
      const told = new Promise((resolve) => session.on("pending_messages.modified", resolve));
      const cleared = [await queue.clear(), await queue.clear()];
      await told;
      return { first: items[0].id === messageId, items: items.map(({ kind, displayText, agentMode }) => ({ kind, displayText, agentMode })), steeringMessages, cleared, left: (await queue.pendingItems()).items };
    },
  }],
});
