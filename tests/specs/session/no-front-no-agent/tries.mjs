import { joinSession } from "@github/copilot-sdk/extension";

const attempts = {
  confirm: () => session.ui.confirm("?"),
  select: () => session.ui.select("?", ["a"]),
  input: () => session.ui.input("?"),
  elicitation: () => session.ui.elicitation({ message: "?", requestedSchema: { type: "object", properties: {} } }),
  send: () => session.send("hello"),
  sendAndWait: () => session.sendAndWait("hello"),
  factory: () => session.factory.run("f"),
  registerTools: () => session.registerTools([]),
  rpc: () => session.rpc.fleet.start(),
};

const session = await joinSession({
  tools: [{
    name: "tries",
    description: "Tries what is not there",
    handler: async () => {
      const lines = [];
      for (const [name, attempt] of Object.entries(attempts)) {
        try {
          lines.push(`${name}: ${JSON.stringify(await attempt())}`);
        } catch (error) {
          lines.push(`${name} failed: ${error.message}`);
        }
      }
      return lines.join("\n");
    },
  }],
});
