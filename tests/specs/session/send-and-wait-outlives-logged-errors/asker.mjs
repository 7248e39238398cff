import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "ask",
    handler: async () => {
      const { type, data } = await session.sendAndWait({ prompt: "what?" });
      console.log(`${type}: ${data.content}`);
    },
  }],
});
