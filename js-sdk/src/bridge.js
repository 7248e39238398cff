// The one place where the SDK meets the runtime: requests go out, calls come in.

import { op_tenon_log, op_tenon_reply, op_tenon_request, op_tenon_stay } from "ext:core/ops";

const LOG_INFO = 0;
const LOG_WARNING = 1;
const LOG_ERROR = 2;

/** Asks the host for something; rejects with the host's reason. */
export async function request(method, params) {
  return op_tenon_request(method, toText(params));
}

let stays = false;

/** From now on the session may bring something, so waiting for it is not waiting for ever. */
export function stay() {
  if (stays) return;
  stays = true;
  op_tenon_stay();
}

/** A value as the host reads it. What JSON cannot say stays behind; half a surrogate pair, which no other
 * program can read, becomes the replacement character. */
function toText(value) {
  const text = JSON.stringify(value) ?? "null";
  if (!text.includes("\\ud")) return text;
  return text.replace(/(?<=(?:^|[^\\])(?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "\\ufffd");
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

/** A call on its way. Most handlers do not look at its signal, which is dear to make. */
class Call {
  #controller;
  #reason;

  get signal() {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#reason) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  abort(reason) {
    this.#reason = new DOMException(reason, "AbortError");
    this.#controller?.abort(this.#reason);
  }
}

/** Says who answers calls of a kind: `(payload, call) => result`. */
export function serve(kind, handler) {
  handlers.set(kind, handler);
}

/** A call from the host. Its outcome is sent back whatever happens in the handler. */
export async function dispatch(kind, id, payload) {
  const call = new Call();
  running.set(id, call);
  try {
    const handler = handlers.get(kind);
    if (!handler) throw new Error(`nothing in this extension answers a call of kind "${kind}"`);
    const result = await handler(JSON.parse(payload), call);
    op_tenon_reply(id, true, toText(result));
  } catch (error) {
    op_tenon_reply(id, false, toText(describeError(error)));
  } finally {
    running.delete(id);
  }
}

/** The host no longer wants a call's result. */
export function cancel(id, reason) {
  running.get(id)?.abort(reason);
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
