import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "stop",
    handler: async ({ args }) => {
      const [by, reason] = args.split(" ");
      const { processing } = await session.rpc.metadata.isProcessing();
      const idle = new Promise((resolve) => session.on("session.idle", resolve));
      const answer = await session.rpc[by]({ reason });
      if (processing) await idle;
      console.log(`${by}: processing ${processing}, ${JSON.stringify(answer)}, then ${(await session.rpc.metadata.isProcessing()).processing}`);
    },
  }],
});
