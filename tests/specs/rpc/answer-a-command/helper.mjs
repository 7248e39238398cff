import { joinSession } from "@github/copilot-sdk/extension";

const session = await joinSession();
session.on("command.execute", async ({ data: { requestId, args } }) => {
  const { commands, ui } = session.rpc;
  const wrong = await ui.handlePendingUserInput({ requestId, response: {} });
  const first = await commands.handlePendingCommand({ requestId, ...(args && { error: `no ${args}` }) });
  const second = await commands.handlePendingCommand({ requestId });
  session.log(`of another kind ${wrong.success}, first ${first.success}, second ${second.success}`);
});
