import { joinSession } from "@github/copilot-sdk/extension";

let ended;
const bothEnded = new Promise((resolve) => (ended = resolve));
const lines = [];

const session = await joinSession({
  onEvent: async ({ type, data }) => {
    if (type !== "command.execute" || data.commandName !== "slow") return;
    const answer = data.args === "badly" ? { error: "given up" } : {};
    const ask = () => session.rpc.commands.handlePendingCommand({ requestId: data.requestId, ...answer });
    const [first, second] = await Promise.all([ask(), ask()]);
    if (lines.push(`${data.args} ${first.success} ${second.success}`) === 2) ended();
  },
  commands: [{ name: "status", handler: () => bothEnded.then(() => console.log(lines.join(", "))) }],
});
