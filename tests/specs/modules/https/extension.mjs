// node:https: a server with a certificate of its own, trusted only by those who were given it.

import assert from "node:assert/strict";
import { once } from "node:events";
import * as prefixed from "node:https";
import * as bare from "https";
import { joinSession } from "@github/copilot-sdk/extension";

// For localhost and 127.0.0.1, valid until 2120, made for these tests and good for nothing else.
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgCWAppIAfq9xdGSoJ
AKz7Ryd5ABvlLfTYAFf+sOdqNHihRANCAARjXzlXmlDXsZoReFa6Rosr1a7mtDa6
BFbHCY8NhaKMed93hvu1ZJWJjy9k7ASGcWPGskGa42lPclB+lq2TInIl
-----END PRIVATE KEY-----`;
const CERT = `-----BEGIN CERTIFICATE-----
MIIBejCCASCgAwIBAgIUDyovsT44k4Cf92L2RNHpvXnqq8YwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAx
MDAwMDAwWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARjXzlXmlDXsZoReFa6Rosr1a7mtDa6BFbHCY8NhaKMed93hvu1ZJWJ
jy9k7ASGcWPGskGa42lPclB+lq2TInIlo04wTDAaBgNVHREEEzARgglsb2NhbGhv
c3SHBH8AAAEwDwYDVR0TAQH/BAUwAwEB/zAdBgNVHQ4EFgQUPWd0R0NrsBP4A55b
7s7DbYx/tCcwCgYIKoZIzj0EAwIDSAAwRQIhAOjJpcxo1b/K3w4AB+PEWHmh9tdI
ssYvY6yMOvm1ZlCAAiBQdXBfQYMrmJnwVoE9EC4g/Tzy9tYKnEm7VJoEaxzn9w==
-----END CERTIFICATE-----`;

async function textOf(stream) {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text += chunk;
  return text;
}

async function check() {
  assert.equal(bare, prefixed);
  const https = prefixed.default;
  const server = https.createServer({ key: KEY, cert: CERT }, async (request, response) => {
    const body = await textOf(request);
    response.writeHead(200, { "x-encrypted": String(request.socket.encrypted) });
    response.write(`${request.method} `);
    response.end(`${request.url} ${body}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  try {
    // With the certificate at hand it is checked, and found good.
    const request = https.request({ host: "localhost", port, path: "/a", method: "POST", ca: CERT, family: 4 });
    request.end("body");
    const [response] = await once(request, "response");
    assert.equal(response.statusCode, 200);
    assert.equal(response.headers["x-encrypted"], "true");
    assert.equal(response.socket.authorized, true);
    assert.equal(await textOf(response), "POST /a body");

    const [unchecked] = await once(https.get(`https://127.0.0.1:${port}/b`, { rejectUnauthorized: false }), "response");
    assert.equal(unchecked.socket.authorized, false);
    const text = await textOf(unchecked);
    assert.equal(text, "GET /b ");

    // Nobody vouches for it, so by default there is no answer.
    const [error] = await once(https.get(`https://127.0.0.1:${port}/c`), "error");
    assert.equal(error.code, "DEPTH_ZERO_SELF_SIGNED_CERT");
    return `${text.trim()}, else ${error.code}`;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

await joinSession({ tools: [{ name: "check_https", description: "Checks node:https", handler: check }] });
