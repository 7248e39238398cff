import { joinSession } from "@github/copilot-sdk/extension";

let session;
let change;
const changed = new Promise((resolve) => (change = resolve));
const commands = [
  {
    name: "serve",
    handler: async () => {
      session = await joinSession({
        commands,
        onEvent: ({ type }) => type === "capabilities.changed" && change(),
        onElicitationRequest: ({ message }) => ({ action: "accept", content: { value: `an answer to ${message}` } }),
      });
    },
  },
  { name: "ask-myself", handler: () => changed.then(() => session.ui.input("Me?")) },
];
session = await joinSession({ commands });
