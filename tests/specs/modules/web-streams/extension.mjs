// Web streams: pulled, piped, teed, transformed and compressed.

import assert from "node:assert/strict";
import { gunzipSync } from "node:zlib";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  // Only what is asked for is made.
  let pulls = 0;
  const numbers = new ReadableStream({
    pull(controller) {
      pulls += 1;
      controller.enqueue(pulls);
      if (pulls === 5) controller.close();
    },
  }, { highWaterMark: 0 });
  const doubled = numbers.pipeThrough(new TransformStream({
    transform(n, controller) { controller.enqueue(n * 2); },
    flush(controller) { controller.enqueue("end"); },
  }, undefined, { highWaterMark: 0 }));
  assert.equal(pulls, 0);
  const reader = doubled.getReader();
  assert.deepEqual(await reader.read(), { value: 2, done: false });
  assert.equal(pulls, 1);
  assert.equal(doubled.locked, true);
  reader.releaseLock();
  assert.deepEqual(await Array.fromAsync(doubled), [4, 6, 8, 10, "end"]);

  // A writer waits for a slow sink.
  const log = [];
  const sink = new WritableStream({
    async write(chunk) { await new Promise(setImmediate); log.push(`wrote ${chunk}`); },
    close() { log.push("closed"); },
  }, new CountQueuingStrategy({ highWaterMark: 1 }));
  const writer = sink.getWriter();
  writer.write("a");
  assert.equal(writer.desiredSize, 0);
  await writer.ready;
  assert.deepEqual(log, ["wrote a"]);
  await writer.write("b");
  await writer.close();
  assert.deepEqual(log, ["wrote a", "wrote b", "closed"]);

  const [left, right] = ReadableStream.from(["x", "y"]).tee();
  assert.deepEqual(await Promise.all([Array.fromAsync(left), Array.fromAsync(right)]), [["x", "y"], ["x", "y"]]);

  let reason;
  const endless = new ReadableStream({ pull(c) { c.enqueue(1); }, cancel(why) { reason = why; } });
  for await (const one of endless) {
    assert.equal(one, 1);
    break; // leaving the loop cancels the stream
  }
  assert.equal(endless.locked, false);
  await assert.doesNotReject(endless.cancel());
  assert.equal(reason, undefined);

  const failing = new ReadableStream({ start(controller) { controller.error(new RangeError("torn")); } });
  await assert.rejects(failing.pipeTo(new WritableStream()), RangeError);
  const stop = AbortSignal.abort(new Error("stopped"));
  await assert.rejects(ReadableStream.from(["x"]).pipeTo(new WritableStream(), { signal: stop }), /stopped/);

  const text = "compress me ".repeat(500);
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  const bytes = Buffer.concat(await Array.fromAsync(packed));
  assert.ok(bytes.length < 200);
  assert.equal(gunzipSync(bytes).toString(), text);
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")).pipeThrough(new TextDecoderStream());
  assert.equal((await Array.fromAsync(unpacked)).join(""), text);
  const split = ReadableStream.from([new Uint8Array([0xe2]), new Uint8Array([0x82, 0xac])]).pipeThrough(new TextDecoderStream());
  assert.equal((await Array.fromAsync(split)).join(""), "€");

  const source = new ReadableStream({ type: "bytes", start(c) { c.enqueue(new Uint8Array([1, 2, 3])); c.close(); } });
  const byob = source.getReader({ mode: "byob" });
  const { value } = await byob.read(new Uint8Array(2));
  assert.deepEqual([...value], [1, 2]);
  return `${pulls} pulled, ${log.length} logged`;
}

await joinSession({ tools: [{ name: "check_web_streams", description: "Checks web streams", handler: check }] });
