// node:stream/promises: pipelines and ends of streams to await.

import assert from "node:assert/strict";
import { createReadStream, createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable, promises } from "node:stream";
import * as prefixed from "node:stream/promises";
import * as bare from "stream/promises";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  assert.equal(bare, prefixed);
  const { finished, pipeline } = prefixed;
  assert.equal(promises.pipeline, pipeline);
  const folder = mkdtempSync(join(tmpdir(), "tenon-stream-"));
  try {
    const [from, to] = [join(folder, "from.txt"), join(folder, "to.txt")];
    writeFileSync(from, "line\n".repeat(50_000));
    let lines = 0;
    await pipeline(createReadStream(from), async function* (chunks) {
      for await (const chunk of chunks) {
        const text = chunk.toString();
        lines += text.split("\n").length - 1;
        yield text.toUpperCase();
      }
    }, createWriteStream(to));
    assert.equal(lines, 50_000);
    assert.equal(readFileSync(to, "utf8"), "LINE\n".repeat(50_000));
    assert.deepEqual(await pipeline(Readable.from([1, 2]), (numbers) => Array.fromAsync(numbers)), [1, 2]);

    await assert.rejects(pipeline(createReadStream(join(folder, "none")), new PassThrough()), { code: "ENOENT" });
    await assert.rejects(pipeline(Readable.from(["x"]), async function* () { throw new RangeError("stage"); }, new PassThrough()), RangeError);

    const stop = new AbortController();
    const endless = new Readable({ read() {} });
    const stuck = pipeline(endless, new PassThrough(), { signal: stop.signal });
    stop.abort();
    await assert.rejects(stuck, { name: "AbortError" });
    assert.equal(endless.destroyed, true);

    const stream = new PassThrough();
    const done = finished(stream);
    stream.resume().end("bye");
    await done;
    const cut = new PassThrough();
    const failed = finished(cut);
    cut.destroy(new Error("cut"));
    await assert.rejects(failed, /cut/);
    return `${lines} lines`;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

await joinSession({ tools: [{ name: "check_stream_promises", description: "Checks node:stream/promises", handler: check }] });
