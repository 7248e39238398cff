// The one place where the SDK meets the runtime: requests go out, calls come in.

import { op_tenon_log, op_tenon_reply, op_tenon_request } from "ext:core/ops";

const LOG_INFO = 0;
const LOG_WARNING = 1;
const LOG_ERROR = 2;

/** Asks the host for something; rejects with the host's reason. */
export async function request(method, params) {
  // Without the detour a member that is `undefined` would arrive as null, and a Date as nothing.
  return op_tenon_request(method, plain(params));
}

/** A copy that can cross to the host: what JSON cannot say stays behind. */
export function plain(value) {
  return JSON.parse(JSON.stringify(value) ?? "null");
}

/** Writes to this extension's own log, which its author reads. */
export function logInfo(text) {
  op_tenon_log(LOG_INFO, text);
}

export function warn(text) {
  op_tenon_log(LOG_WARNING, text);
}

/** Writes an error of the extension's own code to its log, with the place where it happened. */
export function logError(what, error) {
  const { message, stack } = describeError(error);
  // V8's stack begins with the message; QuickJS's has the places alone.
  const text = stack && !stack.includes(message) ? `${message}\n${stack}` : (stack ?? message);
  op_tenon_log(LOG_ERROR, `${what}: ${text}`);
}

const handlers = new Map();
const running = new Map();

/** Says who answers calls of a kind: `(payload, signal) => result`. */
export function serve(kind, handler) {
  handlers.set(kind, handler);
}

/** A call from the host. Its outcome is sent back whatever happens in the handler. */
export async function dispatch(kind, call, payload) {
  const controller = new AbortController();
  running.set(call, controller);
  try {
    const handler = handlers.get(kind);
    if (!handler) throw new Error(`nothing in this extension answers a call of kind "${kind}"`);
    const result = await handler(payload, controller.signal);
    op_tenon_reply(call, true, result ?? null);
  } catch (error) {
    op_tenon_reply(call, false, describeError(error));
  } finally {
    running.delete(call);
  }
}

/** The host no longer wants a call's result. */
export function cancel(call, reason) {
  running.get(call)?.abort(new DOMException(reason, "AbortError"));
}

/** An error as plain data. Anything can be thrown, so anything is described. */
export function describeError(error) {
  try {
    if (error instanceof Error || (typeof error === "object" && error !== null && "message" in error)) {
      const name = typeof error.name === "string" && error.name ? error.name : "Error";
      const message = `${name}: ${String(error.message)}`;
      return typeof error.stack === "string" ? { message, stack: error.stack } : { message };
    }
    return { message: String(error) };
  } catch {
    // Its members throw, or it has no text: the caller must still hear that something was thrown.
    return { message: "Error: something was thrown that cannot be described" };
  }
}
