import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "busy",
    handler: async () => {
      await session.log("begins");
      if (!(await session.ui.confirm("Really?"))) return "stopped";
      const { textResultForLlm, resultType } = await session.rpc.tools.execute({ toolName: "shout", arguments: { text: "hi" } });
      await session.send("and then?");
      return `${resultType}: ${textResultForLlm}`;
    },
  }],
});
