import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{
    name: "model",
    handler: async ({ args }) => {
      const [model, reasoningEffort] = args.split(" ");
      const outcome = await session.setModel(model, reasoningEffort && { reasoningEffort }).then(() => "set", ({ message }) => message);
      console.log(`${outcome}; now ${JSON.stringify(await session.rpc.model.getCurrent())}`);
    },
  }],
});
