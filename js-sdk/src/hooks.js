// Hooks: functions that the host asks at fixed points of a session.

import { serve, warn } from "ext:tenon/bridge.js";
import { registered } from "ext:tenon/registrations.js";
import { toResult } from "ext:tenon/tool-result.js";

/** Every hook, with the fields that its answer may have. */
const OUTPUT_FIELDS = new Map([
  ["onSessionStart", ["additionalContext"]],
  ["onUserPromptSubmitted", ["modifiedPrompt", "additionalContext", "decision", "reason", "suppressOutput"]],
  ["onUserPromptTransformed", ["modifiedTransformedPrompt"]],
  ["onPreToolUse", ["permissionDecision", "permissionDecisionReason", "modifiedArgs", "additionalContext", "suppressOutput"]],
  ["onPreMcpToolCall", ["metaToUse"]],
  ["onPostToolUse", ["modifiedResult", "additionalContext", "suppressOutput"]],
  ["onPostToolUseFailure", ["additionalContext"]],
  ["onAgentStop", ["decision", "reason"]],
  ["onErrorOccurred", ["errorHandling", "retryCount", "userNotification", "suppressOutput"]],
  ["onSessionEnd", ["sessionSummary", "cleanupActions", "suppressOutput"]],
  ["onSubagentStart", ["additionalContext"]],
  ["onSubagentStop", ["decision", "reason", "modifiedResponse"]],
]);

/** Fields that were warned about: a hook may run a thousand times, and says it once. */
const warnedAbout = new Set();

/** Checks the hooks of one `joinSession` and returns what the host needs to know of them. */
export function readHooks(hooks) {
  const declared = [];
  const handlers = new Map();
  if (hooks === undefined || hooks === null) return { declared, handlers };
  if (typeof hooks !== "object") throw new TypeError("joinSession: `hooks` must be an object");
  for (const name of Object.keys(hooks)) {
    if (!OUTPUT_FIELDS.has(name)) warn(`joinSession: unknown hook "${name}" is ignored`);
  }
  for (const name of OUTPUT_FIELDS.keys()) {
    const hook = readHook(name, hooks[name]);
    if (!hook) continue;
    handlers.set(name, hook.handler);
    declared.push({ name, failClosed: hook.failClosed });
  }
  return { declared, handlers };
}

/** A hook is a function, or an object around it that says what its failure means. */
function readHook(name, value) {
  // `enabled && handler` is a common way to leave a hook out.
  if (!value) return undefined;
  const handler = typeof value === "function" ? value : value.handler;
  if (typeof handler !== "function") {
    throw new TypeError(`joinSession: the hook "${name}" must be a function, or { handler, failClosed }`);
  }
  return { handler, failClosed: Boolean(value.failClosed ?? handler.failClosed) };
}

serve("hook", async ({ hook, input, sessionId }) => {
  const handler = registered("hooks").get(hook);
  if (!handler) return null;
  return checkOutput(hook, await handler(shapeInput(input, sessionId), { sessionId }));
});

/** What the extension sees: a Date for the time, and the working directory under both its names. */
function shapeInput(input, sessionId) {
  const directory = input?.workingDirectory ?? input?.cwd;
  return {
    sessionId,
    ...input,
    timestamp: new Date(input?.timestamp ?? Date.now()),
    workingDirectory: directory,
    cwd: input?.cwd ?? directory,
  };
}

/** The answer as the host gets it. One that is no answer counts as a hook that failed, so that a guard
 * that is declared `failClosed` denies. */
function checkOutput(hook, output) {
  if (output === undefined || output === null) return null;
  if (typeof output !== "object" || Array.isArray(output)) {
    const what = Array.isArray(output) ? "an array" : `a ${typeof output}`;
    throw new TypeError(`${hook} returned ${what}; a hook answers with an object or with nothing`);
  }
  const known = OUTPUT_FIELDS.get(hook);
  for (const field of Object.keys(output)) {
    if (!known.includes(field)) warnOnce(hook, field, known);
  }
  if (hook !== "onPostToolUse" || output.modifiedResult === undefined || output.modifiedResult === null) {
    return output;
  }
  // Whatever a tool's handler may return is a result here too.
  const { modifiedResult, ...rest } = output;
  return { ...rest, modifiedResult: toResult(modifiedResult, hook) };
}

function warnOnce(hook, field, known) {
  const key = `${hook}.${field}`;
  if (warnedAbout.has(key)) return;
  warnedAbout.add(key);
  warn(`${hook} returned the field "${field}", which has no effect; it may answer with ${known.join(", ")}`);
}
