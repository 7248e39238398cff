import { joinSession } from "@github/copilot-sdk/extension";

const ask = async (prompt, timeout) => {
  try {
    const answer = await session.sendAndWait(prompt, timeout);
    console.log(`${prompt} -> ${answer === undefined ? "undefined" : `${answer.type} ${answer.data.content}`}`);
  } catch (error) {
    console.log(`${prompt} -> ${error.message}`);
  }
};

const session = await joinSession({
  commands: [
    { name: "ask", description: "Asks the agent", handler: ({ args }) => ask(args) },
    { name: "hurry", description: "Asks the agent, in a hurry", handler: ({ args }) => ask(args, 100) },
    {
      name: "stop",
      description: "Stops the agent",
      handler: async () => {
        const idle = new Promise((resolve) => session.on("session.idle", resolve));
        await session.abort();
        await idle;
      },
    },
  ],
});
