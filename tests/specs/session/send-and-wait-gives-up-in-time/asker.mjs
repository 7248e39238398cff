import { joinSession } from "@github/copilot-sdk/extension";

const ask = (...given) => session.sendAndWait(...given).then(({ data }) => data.content, ({ message }) => message);
const session = await joinSession({
  tools: [
    { name: "hurry", description: "Asks in a hurry", handler: () => ask("in a hurry", 50) },
    { name: "ask", description: "Asks", handler: () => ask("has time") },
  ],
});
