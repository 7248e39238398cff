// node:util: promisify, inspect, format, parseArgs and the other helpers that programs lean on.

import * as prefixed from "node:util";
import * as bare from "util";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

async function check() {
  same("util is node:util", bare === prefixed && bare.default === prefixed.default, true);
  const util = prefixed.default;

  const later = (value, callback) => queueMicrotask(() => (value < 0 ? callback(new RangeError("low")) : callback(null, value * 2)));
  const doubled = util.promisify(later);
  same("promisify", await doubled(21), 42);
  same("a promisified failure", await doubled(-1).catch((error) => error.message), "low");
  const called = await new Promise((resolve) => util.callbackify(async (x) => x + 1)(1, (error, value) => resolve([error, value])));
  same("callbackify", called, [null, 2]);

  const circular = { name: "x", list: [1, [2, [3, [4]]]], map: new Map([["k", new Set([1])]]), when: new Date(0) };
  circular.self = circular;
  const shown = util.inspect(circular, { depth: 2, breakLength: Infinity });
  same("inspect", shown, "<ref *1> { name: 'x', list: [ 1, [ 2, [Array] ] ], map: Map(1) { 'k' => Set(1) { 1 } }, when: 1970-01-01T00:00:00.000Z, self: [Circular *1] }");
  class Point {
    [util.inspect.custom]() { return "Point!"; }
  }
  same("inspect.custom", util.inspect([new Point()]), "[ Point! ]");
  same("format", util.format("%s is %d, %j and %%", "x", 1.5, { a: [1] }, "more"), 'x is 1.5, {"a":[1]} and % more');

  same("isDeepStrictEqual", [
    util.isDeepStrictEqual({ a: [1, new Map([[1, { b: 2 }]])] }, { a: [1, new Map([[1, { b: 2 }]])] }),
    util.isDeepStrictEqual([1], ["1"]),
    util.isDeepStrictEqual([-0], [0]),
  ], [true, false, false]);
  same("types", [
    util.types.isPromise(doubled(1)), util.types.isRegExp(/x/), util.types.isProxy(new Proxy({}, {})),
    util.types.isUint8Array(Buffer.alloc(1)), util.types.isAsyncFunction(check), util.types.isDate({}),
  ], [true, true, true, true, true, false]);

  const { values, positionals, tokens } = util.parseArgs({
    args: ["-v", "--out=dir", "file", "--", "--raw"],
    options: { verbose: { type: "boolean", short: "v" }, out: { type: "string" } },
    allowPositionals: true,
  });
  same("parseArgs", [values, positionals, tokens], [{ verbose: true, out: "dir" }, ["file", "--raw"], undefined]);
  let unknown;
  try {
    util.parseArgs({ args: ["--nope"] });
  } catch (error) {
    unknown = error.code;
  }
  same("an unknown option", unknown, "ERR_PARSE_ARGS_UNKNOWN_OPTION");

  same("styleText", util.styleText("red", "x", { validateStream: false }), "\x1b[31mx\x1b[39m");
  same("stripVTControlCharacters", util.stripVTControlCharacters("\x1b[31mred\x1b[0m"), "red");
  same("toUSVString", util.toUSVString("a\ud800"), "a\ufffd");
  same("MIMEType", new util.MIMEType("text/html; charset=utf-8").params.get("charset"), "utf-8");
  same("parseEnv", util.parseEnv("A=1\nB='x y' # note\n"), { A: "1", B: "x y" });
  same("the coders are the globals", util.TextEncoder === TextEncoder && util.TextDecoder === TextDecoder, true);
  same("getSystemErrorName", util.getSystemErrorName(-2), "ENOENT");

  function Old() {}
  function Older() {}
  util.inherits(Old, Older);
  same("inherits", [new Old() instanceof Older, Old.super_ === Older], [true, true]);
  same("debuglog", util.debuglog("tenon").enabled, false);
  const aborted = util.aborted(AbortSignal.abort(), {}).then(() => "resolved");
  same("aborted", await aborted, "resolved");

  return util.format("%o", [await doubled(21)]).split("\n")[0] + ` ${values.out}`;
}

await joinSession({ tools: [{ name: "check_util", description: "Checks node:util", handler: check }] });
