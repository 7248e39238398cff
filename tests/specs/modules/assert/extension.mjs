// node:assert: what holds passes, what does not throws an error that says so. Checked with plain
// throws: an assert that never fails would pass any check made with itself.

import * as bare from "assert";
import * as prefixed from "node:assert";
import strict from "node:assert/strict";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

function failureOf(action) {
  try {
    action();
  } catch (error) {
    return error;
  }
  throw new Error(`${action} did not throw`);
}

async function check() {
  same("assert is node:assert", bare === prefixed && bare.default === prefixed.default, true);
  const assert = prefixed.default;
  const { AssertionError } = assert;
  same("assert.strict", assert.strict.equal === strict.equal && assert.strict === strict, true);

  const passing = [
    () => assert(1), () => assert.ok("x"), () => assert.equal(1, "1"), () => assert.deepEqual({ a: 1 }, { a: "1" }),
    () => strict.equal(NaN, NaN), () => strict.deepEqual({ a: [1, new Map([[1, { b: 2 }]])] }, { a: [1, new Map([[1, { b: 2 }]])] }),
    () => strict.notDeepEqual([1], ["1"]), () => assert.match("abc", /b/), () => assert.doesNotMatch("abc", /x/),
    () => assert.throws(() => null.x, TypeError), () => assert.doesNotThrow(() => 1), () => assert.ifError(null),
    () => assert.partialDeepStrictEqual({ a: 1, b: { c: 2, d: 3 } }, { b: { c: 2 } }),
  ];
  for (const one of passing) one();

  const failing = [
    () => assert(0), () => assert.ok(""), () => assert.equal(1, 2), () => strict.equal(1, "1"), () => strict.deepEqual([1], ["1"]),
    () => strict.deepEqual(new Set([1]), new Set([2])), () => strict.deepEqual(new Date(0), new Date(1)), () => strict.equal(0, -0),
    () => strict.notEqual(1, 1), () => assert.match("abc", /x/), () => assert.throws(() => {}), () => assert.fail("on purpose"),
    () => strict.deepEqual({ a: undefined }, {}), () => assert.partialDeepStrictEqual({ a: 1 }, { a: 2 }),
  ];
  for (const one of failing) same(`${one} throws`, failureOf(one) instanceof AssertionError, true);

  const error = failureOf(() => strict.equal(1, 2));
  same("the error", [error.code, error.name, error.actual, error.expected, error.operator, error.generatedMessage], [
    "ERR_ASSERTION", "AssertionError", 1, 2, "strictEqual", true,
  ]);
  same("the message", error.message, "Expected values to be strictly equal:\n\n1 !== 2\n");
  same("a message of one's own", failureOf(() => assert.ok(false, "mine")).message, "mine");
  const own = new RangeError("own");
  same("an error of one's own", failureOf(() => assert.ok(false, own)) === own, true);
  const diff = failureOf(() => strict.deepEqual({ a: 1, b: [1, 2] }, { a: 1, b: [1, 3] })).message;
  same("the difference", diff.includes("+     2") && diff.includes("-     3"), true);
  same("an error that ifError gets", failureOf(() => assert.ifError(own)).message, "ifError got unwanted exception: own");

  assert.throws(() => { throw own; }, { name: "RangeError", message: /^own$/ });
  same("the wrong error", failureOf(() => assert.throws(() => { throw own; }, { message: "other" })) instanceof AssertionError, true);
  await assert.rejects(async () => { throw own; }, RangeError);
  const missing = await assert.rejects(Promise.resolve(1)).catch((thrown) => thrown);
  same("a promise that does not reject", missing.message, "Missing expected rejection.");
  await assert.doesNotReject(Promise.resolve());
  return `${passing.length} hold, ${failing.length} do not`;
}

await joinSession({ tools: [{ name: "check_assert", description: "Checks node:assert", handler: check }] });
