import { joinSession } from "@github/copilot-sdk/extension";

const ids = [];
const session = await joinSession({
  tools: [{
    name: "late",
    description: "Answers once more",
    handler: async () => [
      await session.rpc.ui.handlePendingUserInput({ requestId: ids[0], response: { answer: "again", wasFreeform: true } }),
      await session.rpc.permissions.handlePendingPermissionRequest({ requestId: "none", result: { kind: "approve-once" } }),
      await session.rpc.ui.handlePendingElicitation({}).catch(({ message }) => message),
    ],
  }],
});
const answer = (type, path, fields) => session.on(type, ({ data: { requestId } }) => {
  ids.push(requestId);
  path(session.rpc)({ requestId, ...fields });
});
answer("user_input.requested", ({ ui }) => ui.handlePendingUserInput, { response: { answer: "the helper", wasFreeform: true } });
answer("elicitation.requested", ({ ui }) => ui.handlePendingElicitation, { result: { action: "accept", content: { a: 1 } } });
answer("permission.requested", ({ permissions }) => permissions.handlePendingPermissionRequest, { result: { kind: "approve-once" } });
answer("exit_plan_mode.requested", ({ ui }) => ui.handlePendingExitPlanMode, { response: { approved: true } });
answer("auto_mode_switch.requested", ({ ui }) => ui.handlePendingAutoModeSwitch, { response: "no" });
