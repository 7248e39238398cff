// The other side of extension.mjs: counts primes, then answers what it is asked.

import { isMainThread, parentPort, threadId, workerData } from "node:worker_threads";

let primes = 0;
for (let n = 2; n < workerData.below; n += 1) {
  let isPrime = true;
  for (let d = 2; d * d <= n && isPrime; d += 1) isPrime = n % d !== 0;
  if (isPrime) primes += 1;
}
const seen = process.env.TENON_WORKER_SPEC;
process.env.TENON_WORKER_SPEC = "changed in the worker";
parentPort.postMessage({ primes, isMainThread, threadId, seen, when: workerData.when, map: new Map([["k", 1n]]) });

parentPort.on("message", (message) => {
  if (message.port) message.port.postMessage(`got ${message.buffer.byteLength} bytes`);
  if (message.shared) Atomics.add(new Int32Array(message.shared), 0, 5);
  if (message.fail) throw new RangeError("worker boom");
  if (message.shared) parentPort.postMessage("added");
  if (message.stop) process.exit(3);
});
