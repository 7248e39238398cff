// node:http: a server answers fetch and http.request, and bodies flow in both directions in pieces.

import { once } from "node:events";
import * as prefixed from "node:http";
import * as bare from "http";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

async function textOf(stream) {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text += chunk;
  return text;
}

// Sends its second piece only when it is told that the first has arrived.
let release;
async function answer(request, response) {
  if (request.url === "/slow") {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write("data: one\n\n");
    await new Promise((resolve) => { release = resolve; });
    response.end("data: two\n\n");
  } else if (request.url.startsWith("/echo")) {
    const body = await textOf(request);
    response.setHeader("x-method", request.method);
    response.setHeader("set-cookie", ["a=1", "b=2"]);
    response.statusCode = 201;
    response.end(`${request.headers["x-name"]} sent ${body} to ${request.url}`);
  } else {
    response.writeHead(404).end();
  }
}

async function check() {
  same("http is node:http", bare === prefixed && bare.default === prefixed.default, true);
  const http = prefixed.default;
  const server = http.createServer(answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  const agent = new http.Agent({ keepAlive: true });
  try {
    const base = { host: "127.0.0.1", port, agent };
    const text = await requests(http, base);
    await streams(http, base);
    await fetches(`http://127.0.0.1:${port}`);
    same("known to http", [http.STATUS_CODES[418], http.METHODS.includes("PATCH")], ["I'm a Teapot", true]);
    return text;
  } finally {
    agent.destroy();
    server.closeAllConnections();
    server.close();
    await once(server, "close");
    const [error] = await once(http.get({ host: "127.0.0.1", port }), "error");
    same("a request to the closed server", error.code, "ECONNREFUSED");
  }
}

async function requests(http, base) {
  const request = http.request({ ...base, path: "/echo?q=1", method: "POST", headers: { "X-Name": "client" } });
  request.write("one ");
  request.write("two");
  request.end();
  const [response] = await once(request, "response");
  same("status", [response.statusCode, response.statusMessage, response.httpVersion], [201, "Created", "1.1"]);
  same("headers", [response.headers["x-method"], response.headers["set-cookie"]], ["POST", ["a=1", "b=2"]]);
  const text = await textOf(response);
  same("the echo", text, "client sent one two to /echo?q=1");

  const [missing] = await once(http.get({ ...base, path: "/none" }), "response");
  missing.resume();
  await once(missing, "end");
  same("an unknown path", missing.statusCode, 404);
  return text;
}

async function streams(http, base) {
  const [response] = await once(http.get({ ...base, path: "/slow" }), "response");
  const pieces = [];
  for await (const piece of response.setEncoding("utf8")) {
    pieces.push(piece);
    release();
  }
  same("pieces", pieces, ["data: one\n\n", "data: two\n\n"]);
}

async function fetches(origin) {
  const response = await fetch(`${origin}/echo`, { method: "PUT", body: "body", headers: { "x-name": "fetch" } });
  same("fetch's status", [response.status, response.headers.get("x-method")], [201, "PUT"]);
  same("fetch's text", await response.text(), "fetch sent body to /echo");
  const reader = (await fetch(`${origin}/slow`)).body.pipeThrough(new TextDecoderStream()).getReader();
  same("fetch's first piece", (await reader.read()).value, "data: one\n\n");
  release();
  same("fetch's second piece", (await reader.read()).value, "data: two\n\n");
  same("fetch's end", (await reader.read()).done, true);
}

await joinSession({ tools: [{ name: "check_http", description: "Checks node:http", handler: check }] });
