// node:zlib: compresses and expands, in one go and as streams, in formats that gzip(1) reads.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { promisify } from "node:util";
import * as prefixed from "node:zlib";
import * as bare from "zlib";
import { joinSession } from "@github/copilot-sdk/extension";

const TEXT = "All work and no play makes Jack a dull boy.\n".repeat(2000);

async function check() {
  assert.equal(bare, prefixed);
  const zlib = prefixed.default;

  const packed = zlib.gzipSync(TEXT);
  assert.ok(packed.length < TEXT.length / 100, `only ${packed.length} of ${TEXT.length}`);
  assert.equal(execFileSync("gzip", ["-dc"], { input: packed }).toString(), TEXT);
  assert.equal(zlib.gunzipSync(execFileSync("gzip", ["-9c"], { input: TEXT })).toString(), TEXT);

  for (const [there, back] of [
    ["deflateSync", "inflateSync"], ["deflateRawSync", "inflateRawSync"], ["brotliCompressSync", "brotliDecompressSync"],
    ["zstdCompressSync", "zstdDecompressSync"], ["gzipSync", "unzipSync"], ["deflateSync", "unzipSync"],
  ]) {
    const small = zlib[there](TEXT);
    assert.ok(small.length < TEXT.length / 10, there);
    assert.equal(zlib[back](small).toString(), TEXT, back);
  }
  assert.equal(zlib.inflateSync(Buffer.from("789ccb48cdc9c90700062c0215", "hex")).toString(), "hello");
  assert.equal(zlib.crc32("lo", zlib.crc32("hel")), 907060870);

  // Streams, fed in pieces that end in the middle of things.
  const pieces = Readable.from(Array.from({ length: 100 }, (_, i) => TEXT.slice(i * 880, (i + 1) * 880)));
  let text = "";
  await pipeline(pieces, zlib.createGzip({ level: 9 }), zlib.createGunzip(), async (chunks) => {
    for await (const chunk of chunks) text += chunk;
  });
  assert.equal(text, TEXT);

  const gunzip = promisify(zlib.gunzip);
  assert.equal((await gunzip(packed)).toString(), TEXT);
  const corrupt = Buffer.from(packed);
  corrupt[corrupt.length - 5] ^= 0xff; // the checksum
  await assert.rejects(gunzip(corrupt), { code: "Z_DATA_ERROR" });
  await assert.rejects(gunzip(packed.subarray(0, 40)), { code: "Z_BUF_ERROR" });
  assert.throws(() => zlib.gunzipSync(packed, { maxOutputLength: 100 }), { code: "ERR_BUFFER_TOO_LARGE" });
  return `${text.length} bytes came through`;
}

await joinSession({ tools: [{ name: "check_zlib", description: "Checks node:zlib", handler: check }] });
