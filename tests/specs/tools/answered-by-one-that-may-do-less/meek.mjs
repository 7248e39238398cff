import { joinSession } from "@github/copilot-sdk/extension";

const refusals = [];
const answer = {
  "external_tool.requested": (requestId) => session.rpc.tools.handlePendingToolCall({ requestId, result: "forged" }),
  "command.execute": (requestId) => session.rpc.commands.handlePendingCommand({ requestId, error: "forged" }),
};
const session = await joinSession({
  onEvent: async ({ type, data }) => {
    if (!answer[type] || data.toolName === "refusals") return;
    try {
      refusals.push(JSON.stringify(await answer[type](data.requestId)));
    } catch (error) {
      refusals.push(error.message);
    }
    await session.log("tried");
  },
  tools: [{ name: "refusals", handler: () => refusals.join("\n") }],
});
