// node:string_decoder: characters stay whole although their bytes arrive in pieces.

import assert from "node:assert/strict";
import * as prefixed from "node:string_decoder";
import * as bare from "string_decoder";
import { joinSession } from "@github/copilot-sdk/extension";

function check() {
  assert.equal(bare, prefixed);
  const { StringDecoder } = prefixed.default;

  const text = "aé€😀z";
  for (const encoding of ["utf8", "utf16le", "base64", "hex"]) {
    const decoder = new StringDecoder(encoding);
    const bytes = Buffer.from(text);
    const source = encoding === "utf16le" ? Buffer.from(text, "utf16le") : bytes;
    let decoded = "";
    for (const byte of source) decoded += decoder.write(Buffer.from([byte]));
    assert.equal(decoded + decoder.end(), source.toString(encoding), encoding);
  }

  const decoder = new StringDecoder("utf8");
  const pieces = [[0xe2], [0x82], [0xac, 0x61]].map((bytes) => decoder.write(Buffer.from(bytes)));
  assert.deepEqual(pieces, ["", "", "€a"]);
  decoder.write(Buffer.from([0xf0, 0x9f]));
  assert.equal(decoder.end(), "\ufffd"); // what never came is marked
  assert.equal(decoder.write(Buffer.from("after")), "after"); // and forgotten
  assert.equal(decoder.write(Buffer.from([0xff])), "\ufffd");
  assert.throws(() => new StringDecoder("no-such"), { code: "ERR_UNKNOWN_ENCODING" });
  return pieces.join("");
}

await joinSession({ tools: [{ name: "check_string_decoder", description: "Checks node:string_decoder", handler: check }] });
