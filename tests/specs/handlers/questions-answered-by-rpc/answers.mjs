import { joinSession } from "@github/copilot-sdk/extension";

const lines = [];
let answeredAll;
const all = new Promise((resolve) => (answeredAll = resolve));

const session = await joinSession({ tools: [{ name: "answered", handler: () => all.then(() => lines.join("\n")) }] });
const answerWith = (type, method, answer) => session.on(type, async ({ data: { requestId } }) => {
  // An answer of another kind does not fit.
  const { success: wrong } = await session.rpc.permissions.handlePendingPermissionRequest({ requestId, result: { kind: "reject" } });
  const { success } = await session.rpc.ui[method]({ requestId, ...answer });
  if (lines.push(`${type} ${wrong} ${success}`) === 4) answeredAll();
});

answerWith("user_input.requested", "handlePendingUserInput", { response: { answer: "me", wasFreeform: false } });
answerWith("elicitation.requested", "handlePendingElicitation", { result: { action: "accept", content: { a: 1 } } });
answerWith("exit_plan_mode.requested", "handlePendingExitPlanMode", { response: { approved: true } });
answerWith("auto_mode_switch.requested", "handlePendingAutoModeSwitch", { response: "yes" });
