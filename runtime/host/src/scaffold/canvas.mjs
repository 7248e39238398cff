// __name__: __description__
//
// A page beside the conversation, served on 127.0.0.1 as long as somebody has it open.

import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { CanvasError, createCanvas, joinSession } from "@github/copilot-sdk/extension";

let message = "Nothing to show yet";
/** @type {Set<string>} open instances */
const instances = new Set();
/** @type {Set<import("node:http").ServerResponse>} pages that listen for changes */
const viewers = new Set();
/** @type {Promise<{ server: import("node:http").Server, url: string }> | null} */
let serving = null;

// Every program and every web page can reach a loopback port; nobody can guess this path.
const secret = randomBytes(16).toString("hex");

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>__name__</title>
<style>:root { color-scheme: light dark } body { font: 18px system-ui, sans-serif; margin: 3rem }</style>
</head><body><p id="message" role="status"></p><script>
  // An EventSource connects again by itself, and is told the present state each time.
  new EventSource("events").onmessage = (event) => {
    document.getElementById("message").textContent = JSON.parse(event.data); // text, never markup
  };
</script></body></html>`;

const asEvent = () => `data: ${JSON.stringify(message)}\n\n`;

/** @param {import("node:http").IncomingMessage} request @param {import("node:http").ServerResponse} response */
function answer(request, response) {
  if (request.method === "GET" && request.url === `/${secret}/`) {
    response.writeHead(200, {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
      "referrer-policy": "no-referrer", // the address is a secret
    });
    response.end(PAGE);
  } else if (request.method === "GET" && request.url === `/${secret}/events`) {
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    response.write(asEvent());
    viewers.add(response);
    response.on("close", () => viewers.delete(response));
  } else {
    response.writeHead(404, { "content-type": "text/plain" });
    response.end("not found\n");
  }
}

async function start() {
  const server = createServer(answer);
  server.listen(0, "127.0.0.1"); // port 0: a free one, so that two sessions never want the same
  await once(server, "listening");
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { server, url: `http://127.0.0.1:${port}/${secret}/` };
}

async function stop() {
  const running = serving;
  serving = null;
  viewers.forEach((viewer) => viewer.end()); // an open stream would keep the server from closing
  const { server } = (await running?.catch(() => null)) ?? {};
  server?.close();
}

const canvas = createCanvas({
  id: "__name__",
  displayName: "__name__",
  description: "Shows one line of text. An example: replace it.",
  actions: [
    {
      name: "show",
      description: "Changes the line on the page.",
      inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
      handler: ({ input }) => {
        // The agent gets the code of a CanvasError, and can act on it.
        if (typeof input?.text !== "string") throw new CanvasError("invalid_input", '"text" must be a string.');
        message = input.text;
        viewers.forEach((viewer) => viewer.write(asEvent()));
        return { shown: message };
      },
    },
  ],
  // Also called for an instance that is open already: it keeps its address.
  open: async ({ instanceId }) => {
    instances.add(instanceId);
    try {
      serving ??= start();
      const { url } = await serving;
      return { url, title: "__name__", status: "ready" };
    } catch (/** @type {any} */ error) {
      instances.delete(instanceId);
      serving = null;
      throw new CanvasError("server_failed", `The page could not be served: ${error.message}`);
    }
  },
  onClose: async ({ instanceId }) => {
    instances.delete(instanceId);
    if (instances.size === 0) await stop();
  },
});

await joinSession({ canvases: [canvas] });

// Sent before a reload and at the end of the session.
process.on("SIGTERM", async () => {
  await stop();
  process.exit(0);
});
