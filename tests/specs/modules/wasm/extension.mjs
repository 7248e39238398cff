// WebAssembly: a module written out by hand computes, calls out, keeps memory and traps.

import assert from "node:assert/strict";
import { joinSession } from "@github/copilot-sdk/extension";

const I32 = 0x7f, GET = 0x20, CALL = 0x10, CONST = 0x41, ADD = 0x6a, DIVIDE = 0x6d, STORE = 0x36, LOAD = 0x28, END = 0x0b;
const named = (name) => [name.length, ...Buffer.from(name)];
const section = (id, ...content) => [id, content.length, ...content];
const body = (...code) => [code.length + 2, 0, ...code, END]; // no locals

const MODULE = new Uint8Array([
  ...Buffer.from("\0asm"), 1, 0, 0, 0,
  ...section(1, 2, 0x60, 2, I32, I32, 1, I32, 0x60, 1, I32, 0), // types: (i32, i32) -> i32 and (i32) -> ()
  ...section(2, 1, ...named("env"), ...named("tell"), 0, 1), // function 0 is env.tell, of type 1
  ...section(3, 2, 0, 0), // functions 1 and 2 are of type 0
  ...section(5, 1, 0, 1), // one memory, of one page
  ...section(7, 3, ...named("add"), 0, 1, ...named("divide"), 0, 2, ...named("memory"), 2, 0),
  ...section(10, 2,
    // tell(a); memory[0] = a + b; return memory[0]
    ...body(GET, 0, CALL, 0, CONST, 0, GET, 0, GET, 1, ADD, STORE, 2, 0, CONST, 0, LOAD, 2, 0),
    ...body(GET, 0, GET, 1, DIVIDE)),
]);

async function check() {
  assert.equal(WebAssembly.validate(MODULE), true);
  assert.equal(WebAssembly.validate(MODULE.subarray(0, 30)), false);
  const told = [];
  const imports = { env: { tell: (n) => told.push(n) } };
  const { instance, module } = await WebAssembly.instantiate(MODULE, imports);
  const { add, divide, memory } = instance.exports;
  const sum = add(40, 2);
  assert.equal(sum, 42);
  assert.equal(add(0x7fffffff, 1), -0x80000000);
  assert.deepEqual(told, [40, 0x7fffffff]);
  assert.equal(memory.buffer.byteLength, 65536);
  assert.equal(new DataView(memory.buffer).getInt32(0, true), -0x80000000);
  memory.grow(1);
  assert.equal(memory.buffer.byteLength, 131072);
  assert.equal(divide(7, 2), 3);
  assert.throws(() => divide(1, 0), WebAssembly.RuntimeError);

  assert.deepEqual(WebAssembly.Module.exports(module).map(({ name, kind }) => `${kind} ${name}`), ["function add", "function divide", "memory memory"]);
  assert.deepEqual(WebAssembly.Module.imports(module), [{ module: "env", name: "tell", kind: "function" }]);
  const second = new WebAssembly.Instance(new WebAssembly.Module(MODULE), imports);
  assert.equal(second.exports.add(1, 2), 3);
  await assert.rejects(WebAssembly.instantiate(MODULE, {}), TypeError);
  await assert.rejects(WebAssembly.compile(new Uint8Array(8)), WebAssembly.CompileError);
  assert.throws(() => new WebAssembly.Instance(module, { env: {} }), WebAssembly.LinkError);

  const response = new Response(MODULE, { headers: { "content-type": "application/wasm" } });
  const streamed = await WebAssembly.instantiateStreaming(response, imports);
  assert.equal(streamed.instance.exports.add(2, 3), 5);
  return `40 + 2 = ${sum}, from ${MODULE.length} bytes`;
}

await joinSession({ tools: [{ name: "check_wasm", description: "Checks WebAssembly", handler: check }] });
