import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "talk",
    description: "Logs lines",
    handler: async () => {
      await session.log("plain");
      await session.log("an info", { level: "info" });
      await session.log("a warning", { level: "warning" });
      await session.log("an error", { level: "error" });
      await session.log("for a moment", { ephemeral: true });
      await session.log(42, { level: "warning", ephemeral: true });
      return session.log("loud", { level: "debug" }).catch(({ name, message }) => `${name}: ${message}`);
    },
  }],
});
