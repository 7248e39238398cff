import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  commands: [{ name: "mine", description: "My own", handler: ({ args }) => console.log(`mine: ${args}`) }],
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const { commands } = session.rpc;
      const lines = (await commands.list()).commands.map((command) => JSON.stringify(command));
      const attempt = async (name, params) => lines.push(`${name}: ${JSON.stringify(await commands[name](params).catch(({ message }) => message.replace(/ \(.*/, "")))}`);
      await attempt("invoke", { name: "theirs", input: "a b" });
      await attempt("invoke", { name: "/mine" });
      await attempt("execute", { commandName: "THEIRS", args: "c" });
      await attempt("execute", { commandName: "theirs", args: "fail" });
      await attempt("invoke", { name: "nobodys" });
      await attempt("invoke", {});
      return lines.join("\n");
    },
  }],
});
