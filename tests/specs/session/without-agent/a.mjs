import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{ name: "hello", handler: () => session.log("hello") }],
  hooks: { onPreToolUse: () => ({ additionalContext: "seen by a hook" }) },
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const model = await session.setModel("m").catch(({ message }) => message);
      const sent = await session.send("x").catch(({ message }) => message);
      await session.abort();
      return JSON.stringify({ model, sent, models: await session.rpc.model.list(), confirmed: await session.ui.confirm("?") });
    },
  }],
});
