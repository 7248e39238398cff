import { joinSession } from "@github/copilot-sdk/extension";

const answers = { text: { result: "by the helper" }, object: { result: { textResultForLlm: "not allowed", resultType: "denied" } }, error: { error: "the helper gave up" } };
const session = await joinSession();
session.on("external_tool.requested", async ({ data }) => {
  const { success } = await session.rpc.tools.handlePendingToolCall({ requestId: data.requestId, ...answers[data.arguments.with] });
  session.log(`${data.toolCallId}: ${success}`);
});
