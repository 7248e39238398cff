// `session.rpc` answers to any name, so its methods cannot be listed: these are the ones that a host serves, and one that
// none does. Left out is `extensions.reload`, which ends every extension.
const METHODS = [
  "abort", "agent.getCurrent", "agent.list", "canvas.action.invoke", "canvas.close", "canvas.list", "canvas.listOpen",
  "canvas.open", "commands.execute", "commands.handlePendingCommand", "commands.invoke", "commands.list", "eventLog.read",
  "extensions.list", "interruptMainTurn", "log", "mcp.list", "metadata.contextInfo", "metadata.isProcessing",
  "metadata.snapshot", "mode.get", "mode.set", "model.getCurrent", "model.list", "model.setReasoningEffort",
  "model.switchTo", "name.get", "name.set", "permissions.handlePendingPermissionRequest", "permissions.paths.list",
  "plan.delete", "plan.read", "plan.readSqlTodos", "plan.update", "queue.clear", "queue.pendingItems", "send",
  "sendSystemNotification", "skills.list", "tasks.list", "tools.execute", "tools.getCurrentMetadata",
  "tools.handlePendingToolCall", "ui.elicitation", "ui.handlePendingAutoModeSwitch", "ui.handlePendingElicitation",
  "ui.handlePendingExitPlanMode", "ui.handlePendingUserInput", "usage.getMetrics", "workspaces.createFile",
  "workspaces.getWorkspace", "workspaces.listFiles", "workspaces.readFile", "no.such.method",
];

/** Names of parameters, so that arguments nobody meant arrive in the place of those that are meant. */
const FIELDS = ["content", "message", "name", "path", "prompt", "requestId", "result", "toolName", "arguments", "limit"];

/** Every method, called with a value as all of its parameters and as each of them. */
export function namespaces(rpc) {
  return METHODS.map((method) => {
    const called = method.split(".").reduce((at, part) => at[part], rpc);
    const each = (value) => [called(value), called(Object.fromEntries(FIELDS.map((field) => [field, value])))];
    return [`rpc.${method}`, (value) => Promise.allSettled(each(value))];
  });
}
