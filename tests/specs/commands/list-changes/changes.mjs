import { joinSession } from "@github/copilot-sdk/extension";

let session;
const base = [
  { name: "set", handler: ({ args }) => join(args.split(" ").filter(Boolean)) },
  { name: "leave", handler: () => session.disconnect() },
];
const join = async (names) => {
  const more = names.map((name) => ({ name, description: `The command ${name}`, handler: () => {} }));
  session = await joinSession({ commands: [...base, ...more] });
};
await join([]);
