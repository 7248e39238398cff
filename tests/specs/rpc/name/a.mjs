import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { name } = session.rpc;
      const before = await name.get();
      const answer = await name.set({ name: "A good name" });
      return [before, answer, await name.get(), await name.set({}).catch(({ message }) => message)];
    },
  }],
});
