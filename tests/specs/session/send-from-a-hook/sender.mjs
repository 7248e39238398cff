import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: {
    onUserPromptSubmitted: async ({ prompt }) => {
      if (prompt !== "first") return;
      await session.send("from the prompt hook");
    },
    onAgentStop: async () => {
      const { items } = await session.rpc.queue.pendingItems();
      console.log(`waiting: ${items.map(({ displayText }) => displayText)}`);
    },
  },
});
