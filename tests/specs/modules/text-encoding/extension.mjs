// TextEncoder and TextDecoder: whole texts, pieces, foreign encodings and broken bytes.

import assert from "node:assert/strict";
import { joinSession } from "@github/copilot-sdk/extension";

function check() {
  const encoder = new TextEncoder();
  assert.equal(encoder.encoding, "utf-8");
  const bytes = encoder.encode("é€😀");
  assert.equal(Buffer.from(bytes).toString("hex"), "c3a9e282acf09f9880");
  assert.deepEqual([...encoder.encode("\ud800")], [0xef, 0xbf, 0xbd]); // half a pair becomes U+FFFD
  const small = new Uint8Array(5);
  assert.deepEqual(encoder.encodeInto("é€😀", small), { read: 2, written: 5 });

  assert.equal(new TextDecoder().decode(bytes), "é€😀");
  const decoder = new TextDecoder();
  let text = "";
  for (const byte of bytes) text += decoder.decode(new Uint8Array([byte]), { stream: true });
  text += decoder.decode();
  assert.equal(text, "é€😀");

  const broken = new Uint8Array([0x61, 0xff, 0x62]);
  assert.equal(new TextDecoder().decode(broken), "a\ufffdb");
  assert.throws(() => new TextDecoder("utf-8", { fatal: true }).decode(broken), TypeError);
  const marked = new Uint8Array([0xef, 0xbb, 0xbf, 0x61]);
  assert.equal(new TextDecoder().decode(marked), "a");
  assert.equal(new TextDecoder("utf-8", { ignoreBOM: true }).decode(marked), "\ufeffa");

  assert.equal(new TextDecoder("utf-16le").decode(new Uint8Array([0xac, 0x20])), "€");
  assert.equal(new TextDecoder("utf-16be").decode(new Uint8Array([0x20, 0xac])), "€");
  assert.equal(new TextDecoder("latin1").encoding, "windows-1252");
  assert.equal(new TextDecoder("windows-1252").decode(new Uint8Array([0x80])), "€");
  assert.equal(new TextDecoder("shift_jis").decode(new Uint8Array([0x93, 0xfa])), "日");
  assert.throws(() => new TextDecoder("no-such"), RangeError);

  assert.equal(btoa("\xff\x00"), "/wA=");
  assert.equal(atob("/wA="), "\xff\x00");
  assert.throws(() => btoa("€"), { name: "InvalidCharacterError" });
  return `${text} in ${bytes.length} bytes`;
}

await joinSession({ tools: [{ name: "check_text_encoding", description: "Checks TextEncoder and TextDecoder", handler: check }] });
