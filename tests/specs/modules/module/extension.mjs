// node:module: createRequire loads CommonJS files and JSON, once each, and built-in modules.

import assert from "node:assert/strict";
import fs from "node:fs";
import * as prefixed from "node:module";
import { dirname } from "node:path";
import * as bare from "module";
import { joinSession } from "@github/copilot-sdk/extension";

function check() {
  assert.equal(bare, prefixed);
  assert.equal(bare.default, prefixed.default);
  const { builtinModules, createRequire, isBuiltin } = prefixed;
  const require = createRequire(import.meta.url);

  const helper = require("./helper.cjs");
  assert.equal(helper.file, "helper.cjs");
  assert.equal(helper.folder, dirname(require.resolve("./helper.cjs")));
  assert.equal(helper.isMain, false);
  assert.deepEqual(helper.data, { answer: 42 });
  assert.equal(require("./helper.cjs"), helper); // evaluated once
  assert.equal(helper.count, 1);
  assert.equal(require.cache[require.resolve("./helper.cjs")].exports, helper);
  delete require.cache[require.resolve("./helper.cjs")];
  assert.notEqual(require("./helper.cjs"), helper); // and again when it is forgotten
  assert.equal(require("./data.json"), helper.data);

  assert.equal(require("fs"), fs);
  assert.equal(require("node:fs"), fs);
  assert.equal(require.resolve("fs"), "fs");
  for (const name of ["fs", "fs/promises", "child_process", "worker_threads"]) {
    assert.ok(builtinModules.includes(name), name);
    assert.ok(isBuiltin(name) && isBuiltin(`node:${name}`), name);
  }
  assert.equal(isBuiltin("left-pad"), false);
  assert.throws(() => require("./nothing.cjs"), { code: "MODULE_NOT_FOUND" });
  assert.throws(() => require("no-such-package"), { code: "MODULE_NOT_FOUND", message: /no-such-package/ });

  const compiled = new prefixed.Module("made-up");
  compiled._compile("module.exports = { twice: (n) => 2 * n };", "/made/up.cjs");
  assert.equal(compiled.exports.twice(4), 8);
  return `${helper.file} knows ${helper.data.answer}`;
}

await joinSession({ tools: [{ name: "check_module", description: "Checks node:module", handler: check }] });
