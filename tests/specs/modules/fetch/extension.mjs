// fetch: headers, bodies, redirects, streaming and aborts, against a server of this extension's own.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { joinSession } from "@github/copilot-sdk/extension";

const hangUps = []; // one promise for every request to /hang, resolved when its client has gone

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, "http://localhost");
  if (pathname === "/redirect") return response.writeHead(302, { location: "/echo" }).end();
  if (pathname === "/hang") return hangUps.push(once(response, "close"));
  if (pathname === "/half") {
    response.write("half");
    return hangUps.push(once(response, "close"));
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  response.writeHead(pathname === "/teapot" ? 418 : 200, { "content-type": "application/json", "x-two": ["a", "b"] });
  response.end(JSON.stringify({ method: request.method, url: request.url, headers: request.headers, body: Buffer.concat(chunks).toString() }));
});

async function check() {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${server.address().port}`;
  try {
    const echoed = await talks(origin);
    await aborts(origin);
    return echoed;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function talks(origin) {
  const response = await fetch(`${origin}/echo?q=ü`, {
    method: "POST", headers: new Headers({ "X-Token": "t", accept: "text/x" }), body: JSON.stringify({ a: 1 }),
  });
  assert.deepEqual([response.status, response.ok, response.redirected], [200, true, false]);
  assert.equal(response.headers.get("content-type"), "application/json");
  assert.equal(response.headers.get("X-TWO"), "a, b");
  const echo = await response.clone().json();
  assert.deepEqual([echo.method, echo.url, echo.body], ["POST", "/echo?q=%C3%BC", '{"a":1}']);
  assert.deepEqual([echo.headers["x-token"], echo.headers.accept, echo.headers["content-length"]], ["t", "text/x", "7"]);
  assert.equal(echo.headers["content-type"], "text/plain;charset=UTF-8");
  assert.equal(response.bodyUsed, false);
  assert.equal((await response.text()).length > 0 && response.bodyUsed, true);
  await assert.rejects(response.text(), TypeError);

  const teapot = await fetch(`${origin}/teapot`);
  assert.deepEqual([teapot.status, teapot.ok], [418, false]);
  await teapot.body.cancel();
  const followed = await fetch(`${origin}/redirect`);
  assert.deepEqual([followed.redirected, followed.url], [true, `${origin}/echo`]);
  await followed.arrayBuffer();
  const manual = await fetch(`${origin}/redirect`, { redirect: "manual" });
  assert.deepEqual([manual.status, manual.headers.get("location")], [302, "/echo"]);
  await assert.rejects(fetch(`${origin}/redirect`, { redirect: "error" }), TypeError);

  const form = new FormData();
  form.set("field", "value");
  form.set("file", new Blob(["content"], { type: "text/plain" }), "f.txt");
  const posted = await (await fetch(new Request(`${origin}/echo`, { method: "PUT", body: form }))).json();
  assert.match(posted.headers["content-type"], /^multipart\/form-data; boundary=/);
  assert.match(posted.body, /name="field"\r\n\r\nvalue\r\n[^]*filename="f\.txt"\r\n[^]*content/);
  const query = await (await fetch(`${origin}/echo`, { method: "POST", body: new URLSearchParams({ a: "1 2" }) })).json();
  assert.equal(query.body, "a=1+2");
  const pieces = ReadableStream.from(["one ", "two"]).pipeThrough(new TextEncoderStream());
  const streamed = await (await fetch(`${origin}/echo`, { method: "POST", body: pieces, duplex: "half" })).json();
  assert.deepEqual([streamed.body, streamed.headers["transfer-encoding"]], ["one two", "chunked"]);

  assert.equal(await (await fetch("data:text/plain;base64,aGk=")).text(), "hi");
  assert.deepEqual(await Response.json({ a: 1 }, { status: 201 }).json(), { a: 1 });
  await assert.rejects(fetch("http://127.0.0.1:1/"), TypeError);
  await assert.rejects(fetch("no url"), TypeError);
  return `${echo.method} ${echo.url}`;
}

async function aborts(origin) {
  const before = new AbortController();
  const hanging = fetch(`${origin}/hang`, { signal: before.signal });
  await once(server, "request");
  before.abort();
  await assert.rejects(hanging, (error) => error instanceof DOMException && error.name === "AbortError");
  await hangUps[0]; // the server notices

  const during = new AbortController();
  const response = await fetch(`${origin}/half`, { signal: during.signal });
  const reader = response.body.getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value), "half");
  const rest = reader.read();
  during.abort(new RangeError("own reason"));
  await assert.rejects(rest, RangeError);
  await hangUps[1];

  await assert.rejects(fetch(`${origin}/hang`, { signal: AbortSignal.timeout(30) }), { name: "TimeoutError" });
  await assert.rejects(fetch(`${origin}/echo`, { signal: AbortSignal.abort() }), { name: "AbortError" });
}

await joinSession({ tools: [{ name: "check_fetch", description: "Checks fetch", handler: check }] });
