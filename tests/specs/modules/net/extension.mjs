// node:net: echo servers on a TCP port and on a Unix socket, and what happens when nobody listens.

import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import * as prefixed from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as bare from "net";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  assert.equal(bare, prefixed);
  const net = prefixed.default;
  const folder = mkdtempSync(join(tmpdir(), "tenon-net-"));
  try {
    const tcp = await talks(net, { host: "127.0.0.1", port: 0 });
    const unix = await talks(net, { path: join(folder, "echo.sock") });
    await halfCloses(net);
    addresses(net);
    return `tcp ${tcp}, unix ${unix}`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function talks(net, place) {
  const server = net.createServer((socket) => {
    socket.setEncoding("utf8");
    socket.on("data", (text) => socket.write(text.toUpperCase()));
  });
  server.listen(place);
  await once(server, "listening");
  const address = server.address();
  const target = place.path ? place : { host: address.address, port: address.port };
  if (place.path) {
    assert.equal(address, place.path);
    assert.ok(statSync(place.path).isSocket());
  } else {
    assert.equal(address.family, "IPv4");
  }

  const socket = net.connect(target);
  await once(socket, "connect");
  if (!place.path) assert.deepEqual([socket.remoteAddress, socket.remotePort], [address.address, address.port]);
  socket.setEncoding("utf8").write("ping");
  const [answer] = await once(socket, "data");
  socket.write("pong");
  assert.deepEqual(await once(socket, "data"), ["PONG"]);
  assert.deepEqual([socket.bytesRead, socket.bytesWritten], [8, 8]);
  assert.equal(await new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  }), 1);

  // More than fits into the buffers of a socket, so that it has to wait for the reader.
  const large = "x".repeat(4_000_000);
  let received = 0;
  const whole = new Promise((resolve) => {
    // One listener for all of it: several pieces can come in one turn.
    socket.on("data", (text) => {
      received += text.length;
      if (received >= large.length) resolve();
    });
  });
  assert.equal(socket.write(large), false);
  await whole;
  assert.equal(received, large.length);

  socket.end();
  await once(socket, "close");
  server.close();
  await once(server, "close");
  const [error] = await once(net.connect(target), "error");
  assert.equal(error.code, place.path ? "ENOENT" : "ECONNREFUSED");
  assert.equal(error.syscall, "connect");
  return answer;
}

// The client ends its side, the server answers afterwards.
async function halfCloses(net) {
  const server = net.createServer({ allowHalfOpen: true }, (socket) => {
    let text = "";
    socket.setEncoding("utf8").on("data", (chunk) => { text += chunk; });
    socket.on("end", () => socket.end(`got ${text}`));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = net.connect(server.address().port, "127.0.0.1");
  socket.setEncoding("utf8").end("everything");
  let answer = "";
  for await (const chunk of socket) answer += chunk;
  assert.equal(answer, "got everything");
  server.close();
}

function addresses(net) {
  assert.deepEqual(["127.0.0.1", "::1", "localhost"].map(net.isIP), [4, 6, 0]);
  assert.deepEqual([net.isIPv4("1.2.3.4"), net.isIPv6("1.2.3.4")], [true, false]);
  const list = new net.BlockList();
  list.addSubnet("10.0.0.0", 8);
  assert.deepEqual([list.check("10.1.2.3"), list.check("11.1.2.3")], [true, false]);
}

await joinSession({ tools: [{ name: "check_net", description: "Checks node:net", handler: check }] });
