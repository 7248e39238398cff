import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "steer",
    description: "Steers the turn",
    handler: async () => {
      const told = new Promise((resolve) => session.on("user.message", ({ data }) => data.delivery === "steering" && resolve()));
      await session.send({ prompt: "faster", mode: "immediate" });
      await told;
      const blocked = new Promise((resolve) => session.on("session.warning", resolve));
      await session.send({ prompt: "shut up", mode: "immediate" });
      await blocked;
    },
  }],
});
