import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [
    {
      name: "look",
      description: "Writes the plan",
      handler: async () => {
        const { plan } = session.rpc;
        const none = await plan.read();
        await plan.update({ content: "1. Think\n" });
        await plan.update({ content: "1. Think\n2. Write\n" });
        return [none, await plan.read(), await plan.update({}).catch(({ message }) => message)];
      },
    },
    {
      name: "remove",
      description: "Removes the plan",
      handler: async () => [await session.rpc.plan.delete(), await session.rpc.plan.delete(), (await session.rpc.plan.read()).exists],
    },
  ],
});
