import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [
    {
      name: "outer",
      handler: async () => {
        const { processing } = await session.rpc.metadata.isProcessing();
        await session.log(`outer begins, processing ${processing}`);
        await session.rpc.commands.invoke({ name: "inner" });
        await session.log("outer ends");
      },
    },
    { name: "inner", handler: () => session.log("inner") },
  ],
});
