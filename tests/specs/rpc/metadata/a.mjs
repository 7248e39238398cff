import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      await session.rpc.name.set({ name: "Named" });
      return [await session.rpc.metadata.snapshot(), await session.rpc.workspaces.getWorkspace(), await session.rpc.metadata.isProcessing()];
    },
  }],
});
