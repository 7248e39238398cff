// What a session knows without asking: the host says it when the extension joins, and events keep it
// current from then on.

import { add, remove } from "ext:tenon/events.js";

export class LiveState {
  #capabilities = {};
  #canvases = new Map();
  /** Changes that came before the state they change, and wait for it. */
  #early = [];
  #subscriptions;

  /** Listens from now on. The host's answer to joining is older than any event that follows it, but
   * events may be handed out first. */
  constructor() {
    this.#subscriptions = [
      add("capabilities.changed", ({ data }) => this.#apply(() => this.#changeCapabilities(data))),
      add("session.canvas.opened", ({ data }) => this.#apply(() => this.#openCanvas(data))),
      add("session.canvas.closed", ({ data }) => this.#apply(() => this.#canvases.delete(data?.instanceId))),
      add("session.canvas.unavailable", ({ data }) => this.#apply(() => this.#canvases.delete(data?.instanceId))),
    ];
  }

  /** Takes the state at the moment of joining, then what has changed since. */
  begin({ capabilities, openCanvases }) {
    this.#changeCapabilities(capabilities);
    for (const canvas of openCanvases ?? []) this.#openCanvas(canvas);
    const early = this.#early;
    this.#early = null;
    for (const change of early) change();
  }

  /** Stops listening. */
  end() {
    for (const subscription of this.#subscriptions) remove(subscription);
  }

  get capabilities() {
    return this.#capabilities;
  }

  /** A copy: changing it changes nothing. */
  get openCanvases() {
    return [...this.#canvases.values()].map((canvas) => ({ ...canvas }));
  }

  #apply(change) {
    if (this.#early) this.#early.push(change);
    else change();
  }

  #changeCapabilities(changed) {
    this.#capabilities = { ...this.#capabilities, ...changed };
  }

  #openCanvas(canvas) {
    if (typeof canvas?.instanceId === "string") this.#canvases.set(canvas.instanceId, canvas);
  }
}
