// node:tls: an encrypted connection with a checked certificate, a name and a protocol of choice.

import assert from "node:assert/strict";
import { once } from "node:events";
import * as prefixed from "node:tls";
import * as bare from "tls";
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

async function check() {
  assert.equal(bare, prefixed);
  const tls = prefixed.default;
  const names = [];
  const server = tls.createServer({ key: KEY, cert: CERT, ALPNProtocols: ["echo/1"] }, (socket) => {
    names.push(socket.servername);
    socket.on("error", () => {}); // a client that refuses us says so by hanging up
    socket.on("data", (data) => socket.write(data.toString().toUpperCase()));
    socket.on("end", () => socket.end());
  });
  server.on("tlsClientError", () => {});
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  const base = { host: "127.0.0.1", port, servername: "localhost" };
  try {
    const socket = tls.connect({ ...base, ca: [CERT], ALPNProtocols: ["other", "echo/1"], minVersion: "TLSv1.2" });
    await once(socket, "secureConnect");
    assert.equal(socket.encrypted, true);
    assert.equal(socket.authorized, true);
    assert.equal(socket.alpnProtocol, "echo/1");
    const protocol = socket.getProtocol();
    assert.match(protocol, /^TLSv1\.[23]$/);
    const certificate = socket.getPeerCertificate();
    assert.equal(certificate.subject.CN, "localhost");
    assert.equal(certificate.subjectaltname, "DNS:localhost, IP Address:127.0.0.1");
    socket.setEncoding("utf8").write("hello");
    const [answer] = await once(socket, "data");
    assert.equal(answer, "HELLO");
    socket.end();
    await once(socket, "close");
    assert.deepEqual(names, ["localhost"]);

    const [untrusted] = await once(tls.connect(base), "error");
    assert.equal(untrusted.code, "DEPTH_ZERO_SELF_SIGNED_CERT");
    const [misnamed] = await once(tls.connect({ ...base, ca: CERT, servername: "example.org" }), "error");
    assert.equal(misnamed.code, "ERR_TLS_CERT_ALTNAME_INVALID");

    assert.ok(tls.rootCertificates.length > 10);
    assert.ok(tls.getCiphers().includes("tls_aes_128_gcm_sha256"));
    assert.equal(tls.checkServerIdentity("localhost", certificate), undefined);
    assert.equal(tls.checkServerIdentity("example.org", certificate).code, "ERR_TLS_CERT_ALTNAME_INVALID");
    return `${answer} as ${names[0]}`;
  } finally {
    server.close();
  }
}

await joinSession({ tools: [{ name: "check_tls", description: "Checks node:tls", handler: check }] });
