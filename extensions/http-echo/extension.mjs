// http-echo: an HTTP server inside the extension, and a tool that calls it with fetch. A self-test
// of the platform: if this works, servers, sockets, fetch and the event loop between calls do.

import { once } from "node:events";
import { createServer } from "node:http";
import { joinSession } from "@github/copilot-sdk/extension";

const MAX_BODY_BYTES = 64 * 1024;
const TIMEOUT_MS = 5_000;
const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"];

/** @param {string} text */
const failure = (text, resultType = "failure") => ({ textResultForLlm: text, resultType });

let served = 0;

/** @param {import("node:http").ServerResponse} response @param {number} status @param {object} value */
function reply(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

const server = createServer(async (request, response) => {
  try {
    const chunks = [];
    let size = 0;
    for await (const chunk of request) {
      size += chunk.length;
      if (size > MAX_BODY_BYTES) return reply(response, 413, { error: `body larger than ${MAX_BODY_BYTES} bytes` });
      chunks.push(chunk);
    }
    served += 1;
    reply(response, 200, {
      method: request.method,
      path: request.url,
      body: Buffer.concat(chunks).toString("utf8"),
      served, // grows from call to call: the server lives as long as the extension
    });
  } catch {
    response.destroy(); // the client went away in the middle of its request
  }
});

// Loopback only, and a port the system picks. Awaited before joining: when this host does not grant
// the network, the extension fails to load with that reason and offers no tool that cannot work.
server.listen(0, "127.0.0.1");
await once(server, "listening");
const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
const origin = `http://127.0.0.1:${port}`;

await joinSession({
  tools: [
    {
      name: "http_echo",
      description: "Sends a request to this extension's own HTTP server and returns the status and the echoed body.",
      parameters: {
        type: "object",
        properties: {
          path: { type: "string", description: 'Path to request (default "/")' },
          method: { type: "string", enum: METHODS, description: "Default GET, or POST when there is a body" },
          body: { type: "string", description: "Text to send" },
        },
      },
      handler: async (args, invocation) => {
        const body = typeof args?.body === "string" ? args.body : undefined;
        const method = args?.method ?? (body === undefined ? "GET" : "POST");
        if (!METHODS.includes(method)) return failure(`Unknown method "${method}". Use one of: ${METHODS.join(", ")}.`);
        if (method === "GET" && body !== undefined) return failure("A GET request carries no body.");
        const url = new URL(args?.path ?? "/", origin);
        // "//host/" and full URLs resolve away from our own server, and this tool must not fetch those.
        if (url.origin !== origin) return failure(`Not a path on this server: ${args.path}`);

        const deadline = AbortSignal.timeout(TIMEOUT_MS);
        const signal = invocation?.signal ? AbortSignal.any([deadline, invocation.signal]) : deadline;
        try {
          const response = await fetch(url, { method, body, signal });
          const text = `status: ${response.status}\nbody: ${await response.text()}`;
          return response.ok ? text : failure(text);
        } catch (/** @type {any} */ error) {
          if (deadline.aborted) return failure(`${url} did not answer within ${TIMEOUT_MS / 1000} s.`, "timeout");
          return failure(`Could not reach ${url}: ${error.cause?.message || error.message}`);
        }
      },
    },
  ],
});

process.on("SIGTERM", () => {
  server.closeAllConnections(); // kept-alive connections would hold close() back
  server.close();
  process.exit(0);
});
