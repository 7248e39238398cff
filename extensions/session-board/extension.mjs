// session-board: a live page of the session. What happens, which tools ran how often, for how long
// and with which result, and what it cost. Served on 127.0.0.1 while somebody has it open.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { CanvasError, createCanvas, joinSession } from "@github/copilot-sdk/extension";
import { Board } from "./board.mjs";
import { page } from "./page.mjs";

const NEWS_MS = 150; // events come in bursts; the page gets them in bundles
const PING_MS = 15_000;
const HISTORY_MS = 5_000;
const GOODBYE_MS = 500;
const MAX_VIEWERS = 20; // per instance
const MAX_BACKLOG = 1024 * 1024; // a viewer that does not read is dropped

/**
 * @typedef {import("node:http").ServerResponse} Response
 * @typedef {{ token: string, viewers: Set<Response> }} Instance
 */

const board = new Board();
/** @type {Map<string, Instance>} by instance id */
const instances = new Map();
/** @type {typeof board.entries} lines of the timeline that the viewers have not got yet */
let news = [];
/** @type {NodeJS.Timeout | undefined} */
let newsTimer;
/** @type {ReturnType<typeof start> | null} while there is an instance */
let server = null;

// The server --------------------------------------------------------------------------------------

/** @param {string} name @param {unknown} value */
const asEvent = (name, value) => `event: ${name}\ndata: ${JSON.stringify(value)}\n\n`;
const everything = () => asEvent("all", { counters: board.counters(), entries: board.entries });

/** @param {Response} viewer @param {string} text */
function write(viewer, text) {
  if (viewer.writableLength > MAX_BACKLOG) viewer.destroy();
  else viewer.write(text);
}

/** @param {string} text */
function broadcast(text) {
  for (const { viewers } of instances.values()) viewers.forEach((viewer) => write(viewer, text));
}

/** @param {Response} response @param {number} status @param {string} text */
function refuse(response, status, text) {
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" });
  response.end(`${text}\n`);
}

/**
 * Any program and any web page can reach a loopback port: the path is secret, and the name must be ours.
 * @param {import("node:http").IncomingMessage} request
 * @param {Response} response
 * @param {number | undefined} port
 */
function answer(request, response, port) {
  const names = [`127.0.0.1:${port}`, `localhost:${port}`];
  if (!names.includes(request.headers.host ?? "")) return refuse(response, 403, "wrong host");
  const { origin } = request.headers;
  if (origin !== undefined && !names.some((name) => origin === `http://${name}`)) return refuse(response, 403, "wrong origin");
  if (request.method !== "GET") return refuse(response, 405, "only GET");
  const [, token, rest] = /^\/([^/?]+)\/([^?]*)/.exec(request.url ?? "") ?? [];
  const instance = [...instances.values()].find((each) => each.token === token);
  if (!instance) return refuse(response, 404, "not found");
  if (rest === "") {
    const nonce = randomBytes(16).toString("base64");
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer", // the address is a secret
      "x-content-type-options": "nosniff",
      "content-security-policy": `default-src 'none'; connect-src 'self'; script-src 'nonce-${nonce}'; style-src 'nonce-${nonce}'; base-uri 'none'; form-action 'none'`,
    });
    return response.end(page(nonce));
  }
  if (rest !== "events") return refuse(response, 404, "not found");
  if (instance.viewers.size >= MAX_VIEWERS) return refuse(response, 503, "too many viewers");
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-content-type-options": "nosniff" });
  flush(); // what is in the bundle must not come twice
  response.write(everything());
  instance.viewers.add(response);
  response.on("close", () => instance.viewers.delete(response));
}

/** @param {import("node:http").Server} http */
const portOf = (http) => /** @type {import("node:net").AddressInfo | null} */ (http.address())?.port;

async function start() {
  const http = createServer((request, response) => answer(request, response, portOf(http)));
  http.listen(0, "127.0.0.1");
  await once(http, "listening");
  const ping = setInterval(() => broadcast(": ping\n\n"), PING_MS);
  ping.unref?.();
  return { http, ping, port: portOf(http) };
}

async function stop() {
  const stopped = server;
  server = null;
  const { http, ping } = (await stopped?.catch(() => null)) ?? {};
  clearInterval(ping);
  http?.close();
  // Kept-alive connections would hold it open; a moment for the last words of the others.
  setTimeout(() => http?.closeAllConnections?.(), GOODBYE_MS).unref?.();
}

/** @param {Instance} instance */
function sayGoodbye({ viewers }) {
  for (const viewer of viewers) viewer.end(asEvent("bye", null)); // else the page would try to come back
  viewers.clear();
}

// Events ------------------------------------------------------------------------------------------

function flush() {
  clearTimeout(newsTimer);
  newsTimer = undefined;
  if (news.length === 0 && instances.size === 0) return;
  broadcast(asEvent("news", { counters: board.counters(), entries: news }));
  news = [];
}

/** @param {import("@github/copilot-sdk").SessionEvent} event */
function take(event) {
  const entry = board.add(event);
  if (instances.size === 0) return; // a page that opens later gets everything
  if (entry) news.push(entry);
  newsTimer ??= setTimeout(flush, NEWS_MS);
}

// The canvas --------------------------------------------------------------------------------------

const canvas = createCanvas({
  id: "session-board",
  displayName: "Session board",
  description: "A live page of this session: timeline, tools with durations and failures, tokens and cost, what is going on now.",
  actions: [
    {
      name: "snapshot",
      description: "Returns the counters: activity, prompts, requests, tokens, cost, context, and calls, failures and durations of each tool.",
      handler: () => board.counters(),
    },
    {
      name: "clear",
      description: "Empties the timeline. The counters stay.",
      handler: () => {
        const cleared = board.clear();
        if (cleared === 0) throw new CanvasError("nothing_to_clear", "The timeline is empty already.");
        news = [];
        broadcast(everything());
        return { cleared };
      },
    },
  ],
  // Also called to bring an open instance to the front: it keeps its address.
  open: async ({ instanceId }) => {
    if (!instances.has(instanceId)) instances.set(instanceId, { token: randomBytes(24).toString("hex"), viewers: new Set() });
    server ??= start();
    let port;
    try {
      ({ port } = await server);
    } catch (/** @type {any} */ error) {
      instances.delete(instanceId);
      server = null;
      throw new CanvasError("server_failed", `The board could not be served: ${error.message}`);
    }
    const { token } = instances.get(instanceId) ?? {};
    if (!token) throw new CanvasError("closed", "The board was closed while it opened.");
    return { url: `http://127.0.0.1:${port}/${token}/`, title: "Session board", status: board.activity };
  },
  onClose: async ({ instanceId }) => {
    const instance = instances.get(instanceId);
    if (!instance) return;
    instances.delete(instanceId);
    sayGoodbye(instance);
    if (instances.size === 0) await stop();
  },
});

const session = await joinSession({ canvases: [canvas] });

process.on("SIGTERM", () => {
  instances.forEach(sayGoodbye);
  stop();
  process.exit(0);
});

// After a reload the session has a past. What happens while it is fetched waits for its turn.
/** @type {import("@github/copilot-sdk").SessionEvent[] | null} */
let waiting = [];
session.on((event) => {
  if (waiting) waiting.push(event);
  else take(event);
});

async function history() {
  try {
    const timeout = new Promise((resolve) => setTimeout(resolve, HISTORY_MS).unref?.());
    const events = await Promise.race([session.getEvents(), timeout]);
    return Array.isArray(events) ? events : [];
  } catch {
    return []; // not every host keeps one
  }
}

const past = await history();
const known = new Set(past.map(({ id }) => id));
for (const event of [...past, ...waiting.filter(({ id }) => id === undefined || !known.has(id))]) take(event);
waiting = null;
