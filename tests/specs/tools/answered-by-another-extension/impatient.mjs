import { joinSession } from "@github/copilot-sdk/extension";

const answers = {
  text: { result: "answered elsewhere" },
  object: { result: { textResultForLlm: "denied elsewhere", resultType: "denied" } },
  error: { error: "failed elsewhere" },
};
const lines = [];
let request;
let answeredAll;
const all = new Promise((resolve) => (answeredAll = resolve));

const session = await joinSession({
  onEvent: async ({ type, data }) => {
    if (type === "external_tool.requested") request = data;
    if (type !== "session.info" || data.message !== "waits") return;
    const { requestId, toolCallId } = request;
    const first = await session.rpc.tools.handlePendingToolCall({ requestId, ...answers[toolCallId] });
    const second = await session.rpc.tools.handlePendingToolCall({ requestId, result: "too late" });
    if (lines.push(`${toolCallId} ${first.success} ${second.success}`) === 3) answeredAll();
  },
  tools: [{ name: "answered", handler: () => all.then(() => lines.join("\n")) }],
});
