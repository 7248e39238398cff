// The session object that `joinSession` resolves to.
//
// Every member of the public contract is here. What needs the host is a request to it, so that a
// host that does not serve a method rejects it by name, and nothing is missing or hangs.

import { request } from "ext:tenon/bridge.js";
import { ALL, removeAll, subscribe, unsubscribe } from "ext:tenon/events.js";
import { factoryApi } from "ext:tenon/factory.js";
import { registered, unregisterAll } from "ext:tenon/registrations.js";
import { rpcConnection, rpcNamespace } from "ext:tenon/rpc.js";
import { sendAndWait } from "ext:tenon/send-and-wait.js";
import { dialogs } from "ext:tenon/ui.js";

const LOG_LEVELS = new Set(["info", "warning", "error"]);

/** What a message may say; the rest is not the host's to see. */
const MESSAGE_FIELDS = ["prompt", "displayPrompt", "attachments", "mode", "agentMode", "source", "requestHeaders"];

export class CopilotSession {
  #info;
  #live;
  #rpc;
  #ui;
  #factory;
  #connection;
  #leaving;
  #hasLeft = false;
  /** Who waits for something that will not come once the extension has left. */
  #waiting = new Set();

  constructor(info, live) {
    this.#info = info;
    this.#live = live;
    const ask = (method, params) => this.#ask(method, params);
    this.#rpc = rpcNamespace(ask);
    this.#connection = rpcConnection(ask);
    this.#factory = factoryApi(this.#rpc);
    this.#ui = dialogs((form) => this.#ask("rpc.ui.elicitation", form), () => this.capabilities);
  }

  get sessionId() {
    return this.#info.sessionId;
  }

  get workspacePath() {
    return this.#info.workspacePath ?? undefined;
  }

  get capabilities() {
    return this.#live.capabilities;
  }

  get openCanvases() {
    return this.#live.openCanvases;
  }

  get rpc() {
    return this.#rpc;
  }

  get ui() {
    return this.#ui;
  }

  get factory() {
    return this.#factory;
  }

  get connection() {
    return this.#connection;
  }

  /** Shows a message in the session's timeline. */
  async log(message, options) {
    const level = options?.level ?? "info";
    if (!LOG_LEVELS.has(level)) {
      throw new TypeError(`session.log: level must be "info", "warning" or "error", not ${JSON.stringify(level)}`);
    }
    await this.#ask("rpc.log", {
      ...options,
      message: String(message),
      level,
      ephemeral: Boolean(options?.ephemeral),
    });
  }

  /** Queues a prompt; resolves to its id without waiting for the answer. */
  async send(options) {
    const answer = await this.#ask("rpc.send", readMessage(options));
    return answer?.messageId;
  }

  /** Sends a prompt and waits for the last answer to it. */
  async sendAndWait(options, timeout) {
    const parts = {
      on: (type, handler) => this.on(type, handler),
      send: (message) => this.send(message),
      onLeave: (reject) => {
        this.#waiting.add(reject);
        return () => this.#waiting.delete(reject);
      },
    };
    return sendAndWait(parts, options, timeout);
  }

  /** Stops the running turn. */
  async abort() {
    await this.#ask("rpc.abort", {});
  }

  getEvents() {
    return this.#ask("session.getEvents", {});
  }

  getMessages() {
    return this.getEvents();
  }

  async setModel(model, options) {
    await this.#ask("rpc.model.switchTo", { modelId: model, ...options });
  }

  setAutoTier(autoTier) {
    return this.#ask("rpc.model.switchAutoTier", { autoTier });
  }

  /** Subscribes to one type of event, or to all; returns the function that unsubscribes. */
  on(typeOrHandler, maybeHandler) {
    const isForAll = typeof typeOrHandler === "function";
    const handler = isForAll ? typeOrHandler : maybeHandler;
    if (typeof handler !== "function") throw new TypeError("session.on: the handler must be a function");
    if (this.#hasLeft) throw leftError();
    const subscription = subscribe(isForAll ? ALL : String(typeOrHandler), handler);
    return () => unsubscribe(subscription);
  }

  getToolHandler(name) {
    return registered("tools").get(name);
  }

  /** Leaves the session. A second time is fine: `await using` does it after an explicit one. */
  async disconnect() {
    if (this.#hasLeft) return;
    this.#leaving ??= this.#leave();
    await this.#leaving;
  }

  destroy() {
    return this.disconnect();
  }

  [Symbol.asyncDispose]() {
    return this.disconnect();
  }

  async #leave() {
    try {
      await this.#ask("session.disconnect", {});
    } catch (error) {
      // The extension is still in the session, and may try again.
      this.#leaving = undefined;
      throw error;
    }
    this.#hasLeft = true;
    unregisterAll();
    removeAll();
    for (const reject of [...this.#waiting]) reject(leftError());
  }

  async #ask(method, params) {
    if (this.#hasLeft) throw leftError();
    return request(method, params);
  }
}

// The original lets its own client replace what `joinSession` registered, and refuses it to extensions.
for (const part of ["Tools", "Commands", "Canvases", "Hooks", "PermissionHandler", "UserInputHandler",
  "ElicitationHandler", "ExitPlanModeHandler", "AutoModeSwitchHandler"]) {
  CopilotSession.prototype[`register${part}`] = function () {
    throw new Error(`session.register${part} is not served by this host; pass it to joinSession`);
  };
}

function leftError() {
  return new Error("the extension has left the session");
}

/** A message from a prompt alone, or from all that it may say. */
function readMessage(options) {
  const given = typeof options === "string" ? { prompt: options } : options;
  if (typeof given?.prompt !== "string") throw new TypeError("session.send: `prompt` must be a string");
  const message = {};
  for (const field of MESSAGE_FIELDS) {
    if (given[field] !== undefined) message[field] = given[field];
  }
  return message;
}
