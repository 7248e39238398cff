// status-canvas: a small status board in a browser panel, changed by the agent while it works.
// Shows a canvas backed by a local HTTP server, with server-sent events for live updates.
//
// Try it:  tenon call set_status --args '{"text":"Running the tests","level":"busy"}'

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { CanvasError, createCanvas, joinSession } from "@github/copilot-sdk/extension";

const LEVELS = ["info", "busy", "ok", "error"];
const MAX_TEXT = 500;
const PING_MS = 15_000; // a silent connection is closed by some browsers and proxies

let status = { text: "Nothing to report yet", level: "info", at: new Date().toISOString() };
/** @type {Set<import("node:http").ServerResponse>} */
const viewers = new Set(); // open event streams

// Every program on this machine can reach a loopback port, and so can any web page the person has
// open. The unguessable path keeps them out.
const secret = randomBytes(16).toString("hex");

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Status</title><style>
  body { font: 18px system-ui, sans-serif; margin: 3rem; color: #222; background: #fff }
  #text { font-size: 2rem; padding-left: 1rem; border-left: .5rem solid #888; overflow-wrap: anywhere }
  #text.busy { border-color: #d90 } #text.ok { border-color: #2a2 } #text.error { border-color: #c22 }
  #at { color: #777 }
</style></head><body><p id="text"></p><p id="at"></p><script>
  const text = document.getElementById("text"), at = document.getElementById("at");
  // EventSource reconnects by itself, and the server greets every connection with the current state.
  new EventSource("events").addEventListener("status", (event) => {
    const status = JSON.parse(event.data);
    text.textContent = status.text; // never innerHTML: the text comes from a model
    text.className = status.level;
    at.textContent = new Date(status.at).toLocaleTimeString();
  });
</script></body></html>`;

/** @param {object} value */
const asEvent = (value) => `event: status\ndata: ${JSON.stringify(value)}\n\n`;

const server = createServer((request, response) => {
  if (request.method === "GET" && request.url === `/${secret}/`) {
    response.writeHead(200, { "content-type": "text/html; charset=utf-8", "cache-control": "no-store" });
    response.end(PAGE);
  } else if (request.method === "GET" && request.url === `/${secret}/events`) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(asEvent(status));
    viewers.add(response);
    response.on("close", () => viewers.delete(response));
  } else {
    response.writeHead(404, { "content-type": "text/plain" });
    response.end("not found\n");
  }
});
server.listen(0, "127.0.0.1"); // port 0: the system picks a free one, so two sessions never collide
await once(server, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const url = `http://127.0.0.1:${port}/${secret}/`;

const ping = setInterval(() => viewers.forEach((viewer) => viewer.write(": ping\n\n")), PING_MS);

// One function behind the tool and the canvas action, so that both follow the same rules.
/** @param {any} input */
function setStatus(input) {
  const text = typeof input?.text === "string" ? input.text.trim() : "";
  if (!text) throw new CanvasError("invalid_input", 'set_status needs a non-empty "text".');
  const level = input.level ?? "info";
  if (!LEVELS.includes(level)) {
    throw new CanvasError("invalid_input", `Unknown level "${level}". Use one of: ${LEVELS.join(", ")}.`);
  }
  status = { text: text.slice(0, MAX_TEXT), level, at: new Date().toISOString() };
  viewers.forEach((viewer) => viewer.write(asEvent(status)));
  return status;
}

const statusSchema = {
  type: "object",
  properties: {
    text: { type: "string", description: `One short line, at most ${MAX_TEXT} characters` },
    level: { type: "string", enum: LEVELS, description: "Default info" },
  },
  required: ["text"],
};

const board = createCanvas({
  id: "status-board",
  displayName: "Status board",
  description: "Shows in one line what the agent is doing, updated live.",
  inputSchema: { ...statusSchema, required: [] },
  actions: [
    {
      name: "set_status",
      description: "Changes the line on the board.",
      inputSchema: statusSchema,
      handler: (context) => setStatus(context.input), // a CanvasError reaches the agent with its code
    },
  ],
  // Also called to bring an open panel to the front, so it must not start anything new.
  open: (context) => {
    if (context.input?.text) setStatus(context.input);
    return { url, title: "Status board", status: status.text };
  },
  // Nothing to do in onClose: a closed panel drops its connection, and that removes the viewer.
});

await joinSession({
  canvases: [board],
  tools: [
    {
      // For hosts that cannot show a canvas: the board can still be set, and opened by its address.
      name: "set_status",
      description: "Shows one line of status on the status board and returns the board's address.",
      parameters: statusSchema,
      handler: async (args) => {
        try {
          const { text, level } = setStatus(args);
          return `Status set to [${level}] ${text}\nBoard: ${url} (${viewers.size} watching)`;
        } catch (/** @type {any} */ error) {
          return { textResultForLlm: error.message, resultType: "failure" };
        }
      },
    },
  ],
});

// An open event stream would keep server.close() waiting for ever, so the streams end first.
process.on("SIGTERM", () => {
  clearInterval(ping);
  viewers.forEach((viewer) => viewer.end());
  server.close();
  process.exit(0);
});
