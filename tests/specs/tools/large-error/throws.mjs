import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [
    { name: "throws", skipPermission: true, handler: ({ text }) => { throw new Error(text); } },
    {
      name: "measures",
      handler: async () => {
        const { textResultForLlm } = await session.rpc.tools.execute({ toolName: "throws", arguments: { text: "z".repeat(1_000_000) } });
        return textResultForLlm.replace(/z+/g, (run) => `(${run.length} z)`);
      },
    },
  ],
});
