// The session object that `joinSession` resolves to.
//
// Every member of the public contract is here. What needs the host is a request to it, so that a
// host that does not serve a method rejects it by name, and nothing is missing or hangs.

import { request } from "ext:tenon/bridge.js";
import { handlerOf } from "ext:tenon/tools.js";

const LOG_LEVELS = new Set(["info", "warning", "error"]);

export class CopilotSession {
  #info;
  #handlers = new Map();
  #openCanvases = [];
  #rpc = namespace("rpc");

  constructor(info) {
    this.#info = info;
  }

  get sessionId() {
    return this.#info.sessionId;
  }

  get workspacePath() {
    return this.#info.workspacePath ?? undefined;
  }

  get capabilities() {
    return this.#info.capabilities ?? {};
  }

  get openCanvases() {
    return [...this.#openCanvases];
  }

  get rpc() {
    return this.#rpc;
  }

  get ui() {
    return UI;
  }

  get factory() {
    return FACTORY;
  }

  /** Shows a message in the session's timeline. */
  async log(message, options = {}) {
    const level = options?.level ?? "info";
    if (!LOG_LEVELS.has(level)) {
      throw new TypeError(`session.log: level must be "info", "warning" or "error", not ${JSON.stringify(level)}`);
    }
    await request("session.log", { message: String(message), level, ephemeral: Boolean(options?.ephemeral) });
  }

  send(options) {
    return request("session.send", messageOptions(options));
  }

  sendAndWait(options, timeout) {
    return request("session.sendAndWait", { ...messageOptions(options), timeout });
  }

  abort() {
    return request("session.abort");
  }

  getEvents() {
    return request("session.getEvents");
  }

  getMessages() {
    return request("session.getMessages");
  }

  setModel(model, options) {
    return request("session.setModel", { model, ...options });
  }

  setAutoTier(autoTier) {
    return request("session.setAutoTier", { autoTier });
  }

  disconnect() {
    return request("session.disconnect");
  }

  destroy() {
    return this.disconnect();
  }

  [Symbol.asyncDispose]() {
    return this.disconnect();
  }

  getToolHandler(name) {
    return handlerOf(name);
  }

  /** Subscribes to one type of event, or to all; returns the function that unsubscribes. */
  on(typeOrHandler, maybeHandler) {
    const type = typeof typeOrHandler === "function" ? "*" : String(typeOrHandler);
    const handler = typeof typeOrHandler === "function" ? typeOrHandler : maybeHandler;
    if (typeof handler !== "function") throw new TypeError("session.on: the handler must be a function");
    const entry = { handler };
    const entries = this.#handlers.get(type) ?? new Set();
    entries.add(entry);
    this.#handlers.set(type, entries);
    return () => entries.delete(entry);
  }
}

// The original lets its own client replace what `joinSession` registered, and refuses it to extensions.
for (const part of ["Tools", "Commands", "Canvases", "Hooks", "PermissionHandler", "UserInputHandler",
  "ElicitationHandler", "ExitPlanModeHandler", "AutoModeSwitchHandler"]) {
  CopilotSession.prototype[`register${part}`] = function () {
    throw new Error(`session.register${part} is not served by this host; pass it to joinSession`);
  };
}

function messageOptions(options) {
  return typeof options === "string" ? { prompt: options } : { ...options };
}

const UI = Object.freeze({
  confirm: (message, options) => request("ui.confirm", { message, ...options }),
  select: (message, choices, options) => request("ui.select", { message, choices, ...options }),
  input: (message, options) => request("ui.input", { message, ...options }),
  elicitation: (params) => request("ui.elicitation", params),
});

const FACTORY = namespace("factory");

/** `session.rpc.a.b(params)` asks the host for the method `rpc.a.b`, whatever the names are. */
function namespace(path) {
  const members = new Map();
  return new Proxy(function () {}, {
    get(_target, name) {
      // A promise resolves by asking for `then`; a namespace is not a promise.
      if (typeof name === "symbol" || name === "then") return undefined;
      if (!members.has(name)) members.set(name, namespace(`${path}.${name}`));
      return members.get(name);
    },
    apply: (_target, _this, [params]) => request(path, params ?? {}),
  });
}
