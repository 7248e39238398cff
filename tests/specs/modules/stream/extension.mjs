// node:stream: pipelines with pressure in both directions, errors that reach everyone, web streams.

import assert from "node:assert/strict";
import { once } from "node:events";
import * as prefixed from "node:stream";
import * as bare from "stream";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  assert.equal(bare, prefixed);
  const { Duplex, PassThrough, Readable, Transform, Writable, compose, finished, pipeline } = prefixed;
  assert.equal(prefixed.default.Readable, Readable);

  const upper = () => new Transform({
    transform(chunk, _encoding, done) { done(null, chunk.toString().toUpperCase()); },
    flush(done) { done(null, "!"); },
  });
  let shouted = "";
  for await (const chunk of Readable.from(["he", "llo"]).pipe(upper())) shouted += chunk;
  assert.equal(shouted, "HELLO!");

  // A writer that is slow: write() says stop, and "drain" says go on.
  const taken = [];
  const slow = new Writable({
    highWaterMark: 3,
    write(chunk, _encoding, done) { setImmediate(() => { taken.push(chunk.toString()); done(); }); },
  });
  assert.equal(slow.write("ab"), true);
  assert.equal(slow.write("cd"), false);
  assert.equal(slow.writableNeedDrain, true);
  await once(slow, "drain");
  slow.end("ef");
  await once(slow, "finish");
  assert.deepEqual(taken, ["ab", "cd", "ef"]);

  // A reader is asked for no more than is taken from it.
  let made = 0;
  const numbers = new Readable({ objectMode: true, highWaterMark: 2, read() { this.push({ n: made += 1 }); } });
  await once(numbers, "readable");
  assert.ok(made <= 3, `${made} were made ahead`);
  assert.deepEqual(numbers.read(), { n: 1 });
  numbers.destroy();
  await once(numbers, "close");

  const broken = new Readable({ read() { this.destroy(new Error("torn")); } });
  const sink = new PassThrough();
  const error = await new Promise((resolve) => pipeline(broken, sink, resolve));
  assert.equal(error.message, "torn");
  assert.equal(sink.destroyed, true);
  const early = new PassThrough();
  const ended = new Promise((resolve) => finished(early, resolve));
  early.destroy();
  assert.equal((await ended).code, "ERR_STREAM_PREMATURE_CLOSE");

  const squares = await Readable.from([1, 2, 3, 4, 5]).filter((n) => n % 2).map(async (n) => n * n).toArray();
  assert.deepEqual(squares, [1, 9, 25]);
  assert.equal(await Readable.from([1, 2, 3]).reduce((sum, n) => sum + n, 0), 6);

  const both = new Duplex({
    read() {},
    write(chunk, _encoding, done) { this.push(`<${chunk}>`); done(); },
    final(done) { this.push(null); done(); },
  });
  both.end("x");
  assert.deepEqual(await both.map(String).toArray(), ["<x>"]);
  assert.deepEqual(await compose(upper(), new PassThrough()).end("y").map(String).toArray().then((all) => all.join("")), "Y!");

  const web = Readable.toWeb(Readable.from([Buffer.from("via "), Buffer.from("web")]));
  assert.ok(web instanceof ReadableStream);
  const back = await Readable.fromWeb(web.pipeThrough(new TextDecoderStream())).toArray();
  assert.equal(back.join(""), "via web");

  const split = new PassThrough({ encoding: "utf8" });
  split.write(Buffer.from([0xe2, 0x82]));
  split.end(Buffer.from([0xac]));
  assert.equal((await split.toArray()).join(""), "€");
  return `${shouted} ${squares.join(" ")}`;
}

await joinSession({ tools: [{ name: "check_stream", description: "Checks node:stream", handler: check }] });
