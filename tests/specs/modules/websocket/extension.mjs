// WebSocket: a client that talks to a server made of node:http and thirty lines of RFC 6455.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { joinSession } from "@github/copilot-sdk/extension";

const TEXT = 1, CLOSE = 8;

// Takes the next whole frame of a client off the bytes received so far; undefined if more must come.
function takeFrame(state) {
  const { bytes } = state;
  if (bytes.length < 6) return undefined;
  assert.equal(bytes[1] & 0x80, 0x80, "clients mask what they send");
  const short = bytes[1] & 0x7f;
  assert.ok(short < 127, "the frames of this test are small");
  const start = short === 126 ? 4 : 2;
  const length = short === 126 ? bytes.readUInt16BE(2) : short;
  const end = start + 4 + length;
  if (bytes.length < end) return undefined;
  const mask = bytes.subarray(start, start + 4);
  const data = Buffer.from(bytes.subarray(start + 4, end).map((byte, i) => byte ^ mask[i % 4]));
  state.bytes = bytes.subarray(end);
  return { kind: bytes[0] & 0x0f, data };
}

function frame(kind, data) {
  const head = data.length < 126 ? [0x80 | kind, data.length] : [0x80 | kind, 126, data.length >> 8, data.length & 0xff];
  return Buffer.concat([Buffer.from(head), data]);
}

// Echoes every text, and answers a close with a close.
function accept(request, socket) {
  const key = request.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
  const token = createHash("sha1").update(key).digest("base64");
  socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
    `Sec-WebSocket-Accept: ${token}\r\nSec-WebSocket-Protocol: chat\r\n\r\n`);
  const state = { bytes: Buffer.alloc(0) };
  socket.on("data", (data) => {
    state.bytes = Buffer.concat([state.bytes, data]);
    for (let next; (next = takeFrame(state)); ) {
      if (next.kind === CLOSE) socket.end(frame(CLOSE, next.data));
      else socket.write(frame(next.kind, next.data));
    }
  });
  socket.on("error", () => {});
}

const next = (target, type) => new Promise((resolve, reject) => {
  target.addEventListener(type, resolve, { once: true });
  if (type !== "error") target.addEventListener("error", (event) => reject(event.error ?? new Error(event.message)), { once: true });
});

async function check() {
  const server = createServer((_request, response) => response.writeHead(404).end());
  server.on("upgrade", accept);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  try {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/chat`, ["other", "chat"]);
    socket.binaryType = "arraybuffer";
    assert.equal(socket.readyState, WebSocket.CONNECTING);
    await next(socket, "open");
    assert.deepEqual([socket.readyState, socket.protocol], [WebSocket.OPEN, "chat"]);

    socket.send("grüße");
    const { data } = await next(socket, "message");
    assert.equal(data, "grüße");
    socket.send("x".repeat(5000));
    assert.equal((await next(socket, "message")).data.length, 5000);
    socket.send(new Uint8Array([1, 2, 3]));
    assert.deepEqual(new Uint8Array((await next(socket, "message")).data), new Uint8Array([1, 2, 3]));

    socket.close(4001, "enough");
    const closed = await next(socket, "close");
    assert.deepEqual([closed.code, closed.reason, closed.wasClean], [4001, "enough", true]);
    assert.equal(socket.readyState, WebSocket.CLOSED);

    server.removeAllListeners("upgrade"); // from now on a plain web server
    const refused = new WebSocket(`ws://127.0.0.1:${port}/`);
    await next(refused, "error");
    assert.equal(refused.readyState >= WebSocket.CLOSING, true);
    assert.throws(() => new WebSocket("ftp://nowhere"), { name: "SyntaxError" });
    return `${data}, closed with ${closed.code}`;
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

await joinSession({ tools: [{ name: "check_websocket", description: "Checks WebSocket", handler: check }] });
