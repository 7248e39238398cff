// node:vm: code in contexts of its own, with its own globals, file names and time limit.

import assert from "node:assert/strict";
import * as prefixed from "node:vm";
import * as bare from "vm";
import { joinSession } from "@github/copilot-sdk/extension";

function check() {
  assert.equal(bare, prefixed);
  const vm = prefixed.default;

  const context = vm.createContext({ x: 2, log: [] });
  assert.equal(vm.isContext(context), true);
  assert.equal(vm.isContext({}), false);
  const result = vm.runInContext("var y = x * 21; log.push('ran'); y", context);
  assert.equal(result, 42);
  assert.deepEqual([context.y, context.log], [42, ["ran"]]);
  assert.equal(globalThis.y, undefined);

  // Nothing of ours is in there, and its built-ins are not ours.
  assert.deepEqual({ ...vm.runInNewContext("({ process: typeof process, array: typeof Array })") }, { process: "undefined", array: "function" });
  assert.equal(vm.runInNewContext("[]") instanceof Array, false);
  assert.equal(vm.runInThisContext("[]") instanceof Array, true);
  vm.runInThisContext("globalThis.fromVm = 'here'");
  assert.equal(globalThis.fromVm, "here");
  delete globalThis.fromVm;

  const script = new vm.Script("n += 1", { filename: "counter.js" });
  const counter = vm.createContext({ n: 0 });
  for (let i = 0; i < 3; i += 1) script.runInContext(counter);
  assert.equal(counter.n, 3);
  assert.throws(() => new vm.Script("let = ;"), { name: "SyntaxError" });
  assert.throws(() => vm.runInThisContext("\n\nthrow new Error('inside')", { filename: "thrower.js" }), (error) => {
    assert.equal(error.message, "inside");
    assert.match(error.stack, /thrower\.js:3/);
    return true;
  });
  assert.throws(() => vm.runInNewContext("for (;;);", {}, { timeout: 50 }), { code: "ERR_SCRIPT_EXECUTION_TIMEOUT" });
  const add = vm.compileFunction("return a + b + extra", ["a", "b"], { contextExtensions: [{ extra: 100 }] });
  assert.equal(add(1, 2), 103);
  return `${result} and ${counter.n}`;
}

await joinSession({ tools: [{ name: "check_vm", description: "Checks node:vm", handler: check }] });
