import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession({
  tools: [{
    name: "ask",
    description: "Asks",
    handler: async () => `${JSON.stringify(session.capabilities)} ${await session.ui.input("Who?").catch(({ message }) => message)}`,
  }],
});
session.on("capabilities.changed", ({ data }) => data.ui.elicitation || session.log("heard"));
