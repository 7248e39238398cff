// node:worker_threads: a thread that computes, with data of its own and a copy of the environment.

import assert from "node:assert/strict";
import { once } from "node:events";
import * as prefixed from "node:worker_threads";
import * as bare from "worker_threads";
import { joinSession } from "@github/copilot-sdk/extension";

const start = (data, options) => new prefixed.Worker(new URL("./worker.mjs", import.meta.url), { workerData: data, ...options });

async function check() {
  assert.equal(bare, prefixed);
  const { MessageChannel, Worker, isMainThread, parentPort } = prefixed;
  assert.equal(isMainThread, true);
  assert.equal(parentPort, null);

  process.env.TENON_WORKER_SPEC = "from the extension";
  const worker = start({ below: 10_000, when: new Date(5) });
  const [first] = await once(worker, "message");
  assert.equal(first.primes, 1229);
  assert.equal(first.isMainThread, false);
  assert.equal(first.threadId, worker.threadId);
  assert.deepEqual([first.when, first.map], [new Date(5), new Map([["k", 1n]])]);
  // It got a copy: its own change stays there.
  assert.equal(first.seen, "from the extension");
  assert.equal(process.env.TENON_WORKER_SPEC, "from the extension");
  delete process.env.TENON_WORKER_SPEC;

  const { port1, port2 } = new MessageChannel();
  const buffer = new ArrayBuffer(1000);
  const reply = once(port1, "message");
  worker.postMessage({ port: port2, buffer }, [port2, buffer]);
  assert.deepEqual(await reply, ["got 1000 bytes"]);
  assert.equal(buffer.byteLength, 0); // it went over, it was not copied
  port1.close();

  const shared = new SharedArrayBuffer(4);
  const added = once(worker, "message");
  worker.postMessage({ shared });
  assert.deepEqual(await added, ["added"]);
  assert.equal(new Int32Array(shared)[0], 5);

  const ended = once(worker, "exit");
  worker.postMessage({ stop: true });
  assert.deepEqual(await ended, [3]);

  const failing = start({ below: 0 }, { env: { TENON_WORKER_SPEC: "given" } });
  assert.equal((await once(failing, "message"))[0].seen, "given");
  const [error, exit] = [once(failing, "error"), new Promise((resolve) => failing.once("exit", resolve))];
  failing.postMessage({ fail: true });
  assert.equal((await error)[0].message, "worker boom");
  assert.equal((await error)[0].name, "RangeError");
  assert.equal(await exit, 1);

  const spinning = new Worker("require('node:worker_threads').parentPort.postMessage('on'); for (;;);", { eval: true });
  assert.deepEqual(await once(spinning, "message"), ["on"]);
  assert.equal(await spinning.terminate(), 1);
  return `${first.primes} primes`;
}

await joinSession({ tools: [{ name: "check_worker_threads", description: "Checks node:worker_threads", handler: check }] });
