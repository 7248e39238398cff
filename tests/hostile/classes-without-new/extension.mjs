import { joinSession } from "@github/copilot-sdk/extension";
import dgram from "node:dgram";
import crypto from "node:crypto";
import inspector from "node:inspector";
import zlib from "node:zlib";

const { TCP } = process.binding("tcp_wrap");
const { Pipe } = process.binding("pipe_wrap");
const { TTY } = process.binding("tty_wrap");
const { UDP } = process.binding("udp_wrap");
const { AsyncWrap } = process.binding("async_wrap");

/** Classes, and those that these lead to. */
function* classes() {
  const first = [AsyncWrap, Pipe, TCP, TTY, UDP, DOMPoint, DOMRect, ImageData, OffscreenCanvas, zlib.createGzip()._handle.constructor];
  for (const one of first) {
    for (let above = one; typeof above === "function" && above !== Function.prototype; above = Object.getPrototypeOf(above)) yield above;
    for (let above = one.prototype; above && above !== Object.prototype; above = Object.getPrototypeOf(above)) yield above.constructor;
  }
}

/** What the engine's garbage collection trips over, if it was written into. */
async function collectGarbage() {
  for (let round = 0; round < 30; round += 1) {
    const waste = [];
    for (let count = 0; count < 100_000; count += 1) waste.push({ count });
    await new Promise((resolve) => setImmediate(resolve));
  }
}

const numbers = [undefined, -1, -(2 ** 31), 2 ** 32 - 1, 2 ** 53, 1e300, NaN, "x", {}];
const attempts = [
  (number) => new TTY(number, {}),
  (number) => TTY.isTTY(number),
  (number) => new OffscreenCanvas(number, number),
  (number) => new OffscreenCanvas(1, number),
  (number) => { new OffscreenCanvas(1, 1).width = number; },
  (number) => UDP.prototype.open.call(dgram.createSocket("udp4")._handle ?? new UDP(), number),
  (number) => new UDP().open(number),
  () => crypto.createDiffieHellman(Buffer.alloc(0)).generateKeys(),
  () => crypto.createDiffieHellman(Buffer.alloc(8)).generateKeys(),
  () => crypto.createDiffieHellman(Buffer.alloc(8)).computeSecret(Buffer.alloc(8)),
  () => inspector.Network.requestWillBeSent({ toJSON: () => 1 }),
  () => inspector.Network.webSocketCreated(new Date()),
];

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const called = new Set(classes());
      for (const one of called) {
        for (const receiver of [undefined, function () {}, [], {}, new Uint8Array(8), TCP]) {
          let made;
          try {
            made = Reflect.apply(one, receiver, [1, 2, 3, 4]);
          } catch {
            continue;
          }
          throw new Error(`broke: ${one.name} was called without new and gave ${made}`);
        }
      }
      for (const attempt of attempts) {
        for (const number of numbers) {
          try {
            attempt(number);
          } catch {
            // An error of JavaScript is what it should be.
          }
        }
      }
      await collectGarbage();
      // What they are for, they still do.
      const point = new (class extends DOMPoint {})(1, 2);
      if (point.y !== 2 || !(point instanceof DOMPoint) || DOMPoint.fromPoint({ x: 3 }).x !== 3) throw new Error("broke: points");
      const canvas = new OffscreenCanvas(10, 20);
      canvas.width = 5;
      if (canvas.width * canvas.height !== 100) throw new Error("broke: canvases");
      return "held";
    },
  }],
});
