import { joinSession } from "@github/copilot-sdk/extension";

let change;
const changed = new Promise((resolve) => (change = resolve));
const ask = async () => console.log(await session.ui.input("Who?"));

const session = await joinSession({
  onEvent: ({ type }) => type === "capabilities.changed" && change(),
  commands: [{ name: "ask", handler: ask }, { name: "ask-then", handler: () => changed.then(ask) }],
});
