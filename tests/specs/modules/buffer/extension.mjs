// node:buffer: encodings, numbers in bytes, views on shared memory, and Blob.

import * as prefixed from "node:buffer";
import * as bare from "buffer";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

async function check() {
  same("buffer is node:buffer", bare === prefixed && bare.default === prefixed.default, true);
  const { Blob, Buffer, File, atob, btoa, constants, isAscii, isUtf8, transcode } = prefixed;
  same("Buffer is the global", Buffer === globalThis.Buffer && Buffer.from("x") instanceof Uint8Array, true);

  const text = "zażółć €😀";
  const bytes = Buffer.from(text); // an even number, which UTF-16 needs
  for (const encoding of ["utf8", "utf16le", "base64", "base64url", "hex"]) {
    same(`there and back by ${encoding}`, Buffer.from(bytes.toString(encoding), encoding).equals(bytes), true);
  }
  same("base64", Buffer.from("any carnal pleas").toString("base64"), "YW55IGNhcm5hbCBwbGVhcw==");
  same("base64url", Buffer.from([0xfb, 0xff]).toString("base64url"), "-_8");
  same("hex stops at what is no hex", Buffer.from("c0ffeeXX", "hex").toString("hex"), "c0ffee");
  same("latin1", [...Buffer.from("é€", "latin1")], [0xe9, 0xac]);
  same("byteLength", [Buffer.byteLength(text), Buffer.byteLength("YWI=", "base64")], [Buffer.from(text).length, 2]);
  same("bad UTF-8", Buffer.from([0x61, 0xff]).toString(), "a\ufffd");

  const numbers = Buffer.alloc(18);
  numbers.writeUInt32BE(0xdeadbeef, 0);
  numbers.writeInt16LE(-2, 4);
  numbers.writeDoubleBE(Math.PI, 6);
  numbers.writeUIntBE(0x123456, 14, 3);
  same("bytes of numbers", numbers.toString("hex"), "deadbeeffeff400921fb54442d1812345600");
  same("numbers from bytes", [
    numbers.readUInt32BE(0), numbers.readInt16LE(4), numbers.readDoubleBE(6), numbers.readUIntBE(14, 3),
  ], [0xdeadbeef, -2, Math.PI, 0x123456]);
  same("a bigint", Buffer.from("0102030405060708", "hex").readBigUInt64BE() === 0x0102030405060708n, true);
  let code;
  try {
    numbers.readUInt32BE(16);
  } catch (error) {
    code = error.code;
  }
  same("reading past the end", code, "ERR_OUT_OF_RANGE");

  const joined = Buffer.concat([Buffer.from("one"), Buffer.from(", two")]);
  same("search", [joined.indexOf("two"), joined.includes("three"), joined.lastIndexOf(0x6f)], [5, false, 7]);
  const part = joined.subarray(0, 3);
  part[0] = "O".charCodeAt(0);
  same("a part shares its bytes", joined.toString(), "One, two");
  same("compare", [Buffer.compare(Buffer.from("a"), Buffer.from("b")), joined.equals(Buffer.from("One, two"))], [-1, true]);
  same("fill", Buffer.alloc(5, "ab").toString(), "ababa");
  same("swap16", Buffer.from([1, 2, 3, 4]).swap16().toJSON(), { type: "Buffer", data: [2, 1, 4, 3] });
  same("transcode", transcode(Buffer.from("€"), "utf8", "utf16le").toString("hex"), "ac20");
  same("isUtf8 and isAscii", [isUtf8(Buffer.from([0xc3])), isUtf8(Buffer.from("é")), isAscii(Buffer.from("é"))], [false, true, false]);
  same("atob and btoa", [atob("aGk="), btoa("hi")], ["hi", "aGk="]);
  same("constants", constants.MAX_LENGTH > 2 ** 31, true);

  const blob = new Blob(["part ", Buffer.from("two")], { type: "text/plain" });
  same("a blob", [blob.size, blob.type, await blob.slice(5).text()], [8, "text/plain", "two"]);
  const file = new File([blob], "a.txt", { lastModified: 5 });
  same("a file", [file.name, file.lastModified, file instanceof Blob, await file.text()], ["a.txt", 5, true, "part two"]);

  return joined.toString("base64");
}

await joinSession({ tools: [{ name: "check_buffer", description: "Checks node:buffer", handler: check }] });
