// The one place where the SDK meets the runtime: requests go out, calls come in.

import { op_tenon_log, op_tenon_reply, op_tenon_request } from "ext:core/ops";

const LOG_INFO = 0;
const LOG_WARNING = 1;

/** Asks the host for something; rejects with the host's reason. */
export function request(method, params) {
  return op_tenon_request(method, params ?? null);
}

/** Writes to this extension's own log, which its author reads. */
export function logInfo(text) {
  op_tenon_log(LOG_INFO, text);
}

export function warn(text) {
  op_tenon_log(LOG_WARNING, text);
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
  if (error instanceof Error || (typeof error === "object" && error !== null && "message" in error)) {
    const name = typeof error.name === "string" && error.name ? error.name : "Error";
    const message = `${name}: ${String(error.message)}`;
    return typeof error.stack === "string" ? { message, stack: error.stack } : { message };
  }
  return { message: String(error) };
}
