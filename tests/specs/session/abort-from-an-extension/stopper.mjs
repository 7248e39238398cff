import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "stop",
    handler: async () => {
      const idle = new Promise((resolve) => session.on("session.idle", resolve));
      await session.abort();
      await idle;
    },
  }],
  tools: [{ name: "stop", description: "Stops", handler: async () => String(await session.abort()) }],
});
