import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  hooks: {
    onSessionEnd: async () => {
      const { textResultForLlm } = await session.rpc.tools.execute({ toolName: "greet", arguments: {} });
      await session.rpc.workspaces.createFile({ path: "last.txt", content: textResultForLlm });
      await session.log(textResultForLlm);
    },
  },
});
