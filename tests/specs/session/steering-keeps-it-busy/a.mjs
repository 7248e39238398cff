import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: {
    onUserPromptSubmitted: async ({ prompt }) => {
      if (prompt !== "steer") return;
      const ended = new Promise((resolve) => session.on("assistant.turn_end", resolve));
      await session.log("in hook");
      await ended;
      await session.log("hook done");
    },
  },
});
