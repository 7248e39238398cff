import { joinSession } from "@github/copilot-sdk/extension";

// Each waits until the other extension has tried to answer, which may be before it is called.
let tries = 0;
let look = () => {};
const tried = () => new Promise((resolve) => {
  look = () => {
    if (tries > 0) resolve(tries--);
  };
  look();
});

await joinSession({
  onEvent: ({ type, data }) => {
    if (type !== "session.info" || data.message !== "tried") return;
    tries++;
    look();
  },
  tools: [{ name: "slow", handler: async () => (await tried(), "by its handler") }],
  commands: [{ name: "slow", handler: async () => void (await tried()) }],
});
