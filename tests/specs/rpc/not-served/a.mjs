import { joinSession } from "@github/copilot-sdk/extension";

const attempts = {
  fleet: () => session.rpc.fleet.start({ prompt: "x" }),
  history: () => session.rpc.history.compact(),
  shell: () => session.rpc.shell.exec({ command: "ls" }),
  deep: () => session.rpc.a.b.c.d(),
  top: () => session.rpc.anything(),
  pending: () => session.rpc.commands.list.more(),
};
const session = await joinSession({
  tools: [{
    name: "look",
    description: "Looks",
    handler: async () => {
      const lines = [];
      for (const [name, attempt] of Object.entries(attempts)) lines.push(`${name}: ${await attempt().then(() => "works", (error) => `${error instanceof Error} ${error.message}`)}`);
      // Not mistaken for a promise or a value.
      lines.push(`${typeof session.rpc.then} ${typeof (await session.rpc.fleet)} ${JSON.stringify({ rpc: session.rpc })}`);
      return lines.join("\n");
    },
  }],
});
