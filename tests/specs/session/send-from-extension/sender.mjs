import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [
    {
      name: "follow_up",
      description: "Queues a prompt",
      handler: async () => {
        const id = await session.send({
          prompt: "and then?",
          displayPrompt: "(a follow-up)",
          attachments: [{ type: "file", path: "README.md", displayName: "readme" }],
        });
        return typeof id;
      },
    },
    {
      name: "steer",
      description: "Steers the turn",
      handler: async () => {
        const told = new Promise((resolve) => session.on("user.message", ({ data }) => data.delivery === "steering" && resolve()));
        const id = await session.send({ prompt: "faster", mode: "immediate" });
        await told;
        return typeof id;
      },
    },
  ],
});
