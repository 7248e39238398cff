import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { tools } = session.rpc;
      const lines = [];
      const attempt = async (params) => lines.push(JSON.stringify(await tools.execute(params).catch(({ message }) => message)));
      await attempt({ toolName: "double", arguments: { n: 4 } });
      await attempt({ toolName: "double", arguments: { n: 5 } });
      await attempt({ name: "free", arguments: {} });
      await attempt({ toolName: "none", arguments: {} });
      await attempt({});
      return lines.join("\n");
    },
  }],
});
