// structuredClone: copies what JSON cannot, moves a port, refuses what has no copy.

import assert from "node:assert/strict";
import { joinSession } from "@github/copilot-sdk/extension";

function check() {
  const original = {
    date: new Date(7), pattern: /x+/giu, map: new Map([[{ key: 1 }, new Set([1, "two"])]]), big: 2n ** 70n, nothing: undefined,
    bytes: new Uint8Array([1, 2, 3]), error: new RangeError("bad", { cause: "why" }), sparse: [1, , 3], zero: -0, nan: NaN,
    boxed: Object(true),
  };
  original.self = original;
  const copy = structuredClone(original);
  assert.notEqual(copy, original);
  assert.equal(copy.self, copy);
  assert.deepEqual(copy.map, original.map);
  assert.deepEqual([copy.date, copy.pattern, copy.big, copy.bytes, copy.zero, copy.nan, copy.boxed], [
    new Date(7), /x+/giu, 2n ** 70n, new Uint8Array([1, 2, 3]), -0, NaN, Object(true),
  ]);
  assert.deepEqual(["nothing" in copy, 1 in copy.sparse, copy.sparse.length], [true, false, 3]);
  assert.ok(copy.error instanceof RangeError);
  assert.deepEqual([copy.error.message, copy.error.cause], ["bad", "why"]);
  copy.bytes[0] = 9;
  assert.equal(original.bytes[0], 1);

  const views = { a: new Uint8Array(4) };
  views.b = new DataView(views.a.buffer);
  const cloned = structuredClone(views);
  assert.equal(cloned.a.buffer, cloned.b.buffer); // what was shared stays shared

  const { port1, port2 } = new MessageChannel();
  const moved = structuredClone({ port: port1 }, { transfer: [port1] });
  assert.ok(moved.port instanceof MessagePort && moved.port !== port1);
  port2.close();

  class Point {
    x = 1;
    get double() { return 2; }
  }
  const plain = structuredClone(new Point());
  assert.deepEqual([plain.constructor, plain.x, "double" in plain], [Object, 1, false]);
  for (const impossible of [() => {}, Symbol("s"), new WeakMap(), { deep: [() => {}] }, Promise.resolve()]) {
    assert.throws(() => structuredClone(impossible), (error) => error instanceof DOMException && error.name === "DataCloneError");
  }
  return `${Object.keys(copy).length} kinds copied`;
}

await joinSession({ tools: [{ name: "check_structured_clone", description: "Checks structuredClone", handler: check }] });
