import { joinSession } from "@github/copilot-sdk/extension";

const { commands } = { commands: [{ name: "mine", handler: () => console.log("mine ran") }] };

const session = await joinSession({
  commands,
  tools: [{
    name: "runs",
    handler: async () => {
      const lines = (await session.rpc.commands.list()).commands.map((command) => JSON.stringify(command));
      const attempt = async (method, params) => {
        try {
          lines.push(JSON.stringify(await session.rpc.commands[method](params)));
        } catch (error) {
          lines.push(error.message);
        }
      };
      await attempt("invoke", { name: "greet", input: "you" });
      await attempt("execute", { commandName: "/greet", args: "all" });
      await attempt("invoke", { name: "mine" });
      await attempt("invoke", { name: "fail" });
      await attempt("invoke", { name: "missing" });
      await attempt("invoke", {});
      return lines.join("\n");
    },
  }],
});
