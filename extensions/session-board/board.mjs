// What the board knows: a bounded timeline, and counters that are kept up to date event by event.

const MAX_ENTRIES = 500;
const MAX_TEXT = 300;
const MAX_NAMES = 200; // tools and models; a name comes from outside, and there is no end to them
const TOKENS = /** @type {const} */ (["input", "output", "cacheRead", "cacheWrite", "reasoning"]);
const NOISE = /_delta$|\.streaming_|partial_result|\.hook\.|^hook\.|usage_info$|tool_call_delta/;

/** @param {unknown} value */
const firstLine = (value) => {
  const text = typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value) ?? "";
  const line = text.trim().split("\n")[0];
  return line.length > MAX_TEXT ? `${line.slice(0, MAX_TEXT - 1)}…` : line;
};
/** @param {unknown} value */
const number = (value) => (typeof value === "number" && Number.isFinite(value) ? value : 0);

/**
 * One line about an event. The data is that of any event, also of one that a later host has.
 * @param {string} type
 * @param {any} data
 * @param {{ name: string, ms: number }} [tool]
 */
function describe(type, data, tool) {
  switch (type) {
    case "tool.execution_start":
      return `${data.toolName}: ${firstLine(data.arguments?.command ?? data.arguments?.path ?? data.arguments)}`;
    case "tool.execution_complete":
      return `${data.toolName ?? tool?.name ?? "tool"}: ${data.success ? "done" : firstLine(data.error?.message) || "failed"}${tool ? ` (${tool.ms} ms)` : ""}`;
    case "assistant.usage":
      return `${data.model ?? "model"}: ${number(data.inputTokens)} in, ${number(data.outputTokens)} out`;
    case "permission.requested": {
      const { kind, fullCommandText, fileName, path, url, toolName } = data.permissionRequest ?? {};
      return `${kind ?? "permission"}: ${firstLine(fullCommandText ?? fileName ?? path ?? url ?? toolName)}`;
    }
    default:
      return firstLine(data.content ?? data.message ?? data.question ?? data.intent ?? data.title ?? data.newModel ?? data.agentDisplayName
        ?? data.agentName ?? data.summary ?? data.command ?? data.reason ?? data.path ?? data.name ?? "");
  }
}

export class Board {
  /** @type {{ id: number, time: number, type: string, text: string, failed: boolean, agent: string | null }[]} */
  entries = [];
  /** @type {Map<string, { calls: number, failures: number, running: number, totalMs: number, maxMs: number }>} */
  tools = new Map();
  /** @type {Map<string, { requests: number, input: number, output: number, cost: number }>} */
  models = new Map();
  tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 };
  cost = 0;
  requests = 0;
  prompts = 0;
  errors = 0;
  /** @type {{ used: number, limit: number } | null} */
  context = null;
  state = "idle";
  /** @type {Map<string, { name: string, started: number }>} by toolCallId */
  #running = new Map();
  #waiting = new Set(); // permission requests without an answer
  #sequence = 0;
  #dropped = 0;

  /**
   * Takes an event in; gives its line of the timeline, or null for one that has none.
   * @param {any} event
   */
  add(event) {
    const type = String(event?.type ?? "");
    const data = event?.data !== null && typeof event?.data === "object" ? event.data : {};
    const time = Date.parse(event?.timestamp) || Date.now();
    const tool = this.#count(type, data, time);
    if (type === "" || NOISE.test(type)) return null;
    const failed = type.endsWith("error") || type.endsWith("failed") || type === "abort" || (type === "tool.execution_complete" && !data.success);
    const entry = { id: (this.#sequence += 1), time, type, text: describe(type, data, tool), failed, agent: event.agentId ?? null };
    this.entries.push(entry);
    if (this.entries.length > MAX_ENTRIES) {
      this.entries.shift();
      this.#dropped += 1;
    }
    return entry;
  }

  /**
   * @template Counters
   * @param {Map<string, Counters>} map
   * @param {string} name
   * @param {Counters} fresh
   */
  #named(map, name, fresh) {
    const key = map.has(name) || map.size < MAX_NAMES ? name : "(others)";
    const counters = map.get(key) ?? fresh;
    map.set(key, counters);
    return counters;
  }

  /** @param {unknown} name */
  #tool(name) {
    return this.#named(this.tools, String(name ?? "tool"), { calls: 0, failures: 0, running: 0, totalMs: 0, maxMs: 0 });
  }

  /** @param {string} type @param {any} data @param {number} time */
  #count(type, data, time) {
    switch (type) {
      case "user.message":
        this.prompts += 1;
        this.state = "working";
        break;
      case "assistant.turn_start":
        this.state = "working";
        break;
      case "tool.execution_start": {
        const tool = this.#tool(data.toolName);
        tool.calls += 1;
        tool.running += 1;
        this.#running.set(data.toolCallId, { name: String(data.toolName ?? "tool"), started: time });
        break;
      }
      case "tool.execution_complete": {
        const call = this.#running.get(data.toolCallId);
        this.#running.delete(data.toolCallId);
        const tool = this.#tool(call?.name ?? data.toolName);
        const ms = call ? Math.max(0, time - call.started) : 0;
        if (call) tool.running -= 1;
        else tool.calls += 1; // its start was before our time
        if (!data.success) tool.failures += 1;
        tool.totalMs += ms;
        tool.maxMs = Math.max(tool.maxMs, ms);
        return call && { name: call.name, ms };
      }
      case "permission.requested":
        if (!data.resolvedByHook) this.#waiting.add(data.requestId);
        break;
      case "permission.completed":
        this.#waiting.delete(data.requestId);
        break;
      case "assistant.usage": {
        const model = this.#named(this.models, String(data.model ?? "model"), { requests: 0, input: 0, output: 0, cost: 0 });
        this.requests += 1;
        model.requests += 1;
        for (const key of TOKENS) this.tokens[key] += number(data[`${key}Tokens`]);
        model.input += number(data.inputTokens);
        model.output += number(data.outputTokens);
        model.cost += number(data.cost);
        this.cost += number(data.cost);
        break;
      }
      case "session.usage_info":
        this.context = { used: number(data.currentTokens), limit: number(data.tokenLimit) };
        break;
      case "session.error":
        this.errors += 1;
        break;
      case "session.idle":
      case "session.shutdown":
        this.state = type === "session.idle" ? "idle" : "ended";
        for (const { name } of this.#running.values()) this.#tool(name).running -= 1; // cut off
        this.#running.clear();
        this.#waiting.clear();
        break;
      default:
    }
    return undefined;
  }

  /** What is going on, in words. */
  get activity() {
    if (this.state === "ended") return "The session has ended";
    if (this.#waiting.size > 0) return "Waiting for a permission";
    const names = [...new Set([...this.#running.values()].map(({ name }) => name))];
    if (names.length > 0) return `Working on ${names.join(", ")}`;
    return this.state === "idle" ? "Idle" : "Working";
  }

  counters() {
    const { activity, state, prompts, requests, errors, tokens, cost, context } = this;
    return {
      activity, state: this.#running.size > 0 ? "tool" : state, prompts, requests, errors,
      tokens: { ...tokens }, cost, context,
      tools: [...this.tools].map(([name, tool]) => ({ name, ...tool, averageMs: Math.round(tool.totalMs / Math.max(1, tool.calls - tool.running)) })),
      models: [...this.models].map(([name, model]) => ({ name, ...model })),
      timeline: { entries: this.entries.length, dropped: this.#dropped },
    };
  }

  /** Empties the timeline; the counters stay. Gives how many lines there were. */
  clear() {
    const count = this.entries.length;
    this.entries = [];
    this.#dropped = 0;
    return count;
  }
}
