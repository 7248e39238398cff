// Walks over everything that code of an extension can reach and calls each function with arguments that nobody meant.
// Every choice is made by the order in which things are found, so two runs make the same calls.

import { createRequire } from "node:module";

const { apply, construct, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
const { setImmediate } = globalThis;

/** What ends, stops or blocks the process as it is meant to, and what would undo the walk itself. By the last part of
 * a function's path; each with the reason. */
const SKIPPED = new Map([
  ["exit", "ends the process"],
  ["reallyExit", "ends the process"],
  ["_reallyExit", "ends the process"],
  ["abort", "ends the process"],
  ["kill", "ends the process"],
  ["_kill", "ends the process"],
  ["_debugProcess", "stops the process"],
  ["emit", "`process.emit` runs the handlers that end the process"],
  ["emitExit", "ends the process"],
  ["wait", "`Atomics.wait` blocks"],
  ["reportError", "ends the process, as an error that nobody caught"],
  ["_fatalException", "ends the process, as an error that nobody caught"],
  ["triggerUncaughtException", "ends the process, as an error that nobody caught"],
  ["removeAllListeners", "takes away the walk's own handler of rejections"],
  ["removeListener", "the same"],
  ["off", "the same"],
  ["setUncaughtExceptionCaptureCallback", "the same"],
  ["prompt", "waits for standard input"],
  ["alert", "waits for standard input"],
  ["confirm", "waits for standard input"],
  ["REPLServer", "reads standard input, and catches the errors that nobody else does"],
  ["_initCluster", "makes a primary process of it"],
  ["__initCluster", "makes a primary process of it"],
  ["onSocket", "throws later, where nobody can catch it"],
  ["spawnSync", "waits for a child"],
  ["execSync", "waits for a child"],
  ["execFileSync", "waits for a child"],
  ["fork", "starts children without end"],
  ["chdir", "the walk's own files are relative"],
  ["Worker", "starts workers without end"],
  ["setFlagsFromString", "changes the engine; refused"],
  ["setHeapSnapshotNearHeapLimit", "writes files of the heap's size"],
  ["writeHeapSnapshot", "writes files of the heap's size"],
  ["getHeapSnapshot", "copies the heap"],
  ["takeCoverage", "writes files"],
]);

/** Computes for as long, or takes as much memory, as its argument says: it gets no large numbers, which would only show
 * that an extension is ended at its limits. */
const SIZED =
  /^(?:scrypt|pbkdf2|argon2|hkdf|generate|checkPrime|create?DiffieHellman|DiffieHellman|alloc|random|(?:Slow|Fast|Safe)?Buffer|encode|fill|pad|repeat|_read$|species|write|Zlib|Brotli|Deflate|Gzip|Inflate|Gunzip|Unzip|Zstd|constructor)/;

const huge = [2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 53, 1e300, Infinity];
const odd = [undefined, null, true, -1, -(2 ** 31), -(2 ** 53), 0, 0.5, NaN, "", "x", "\0", "\ud800", -1n, 2n ** 64n];
const made = [
  () => Symbol("s"),
  () => ({}),
  () => [],
  () => () => undefined,
  () => new Uint8Array(0),
  () => new Uint8Array(8),
  () => new ArrayBuffer(8),
  () => new SharedArrayBuffer(8),
  () => new DataView(new ArrayBuffer(8)),
  () => new Map(),
  () => new Date(NaN),
  () => Object.create(null),
  () => Promise.resolve(),
  () => new Proxy({}, {}),
  () => ({ get length() { throw new Error("thrown by a getter"); }, toString() { throw new Error("thrown"); } }),
];
const small = [...odd.map((value) => () => value), ...made];
const all = [...small, ...huge.map((value) => () => value)];

/** Lists of arguments of different kinds. */
const MIXTURES = 8;

/** The lists of arguments: none, each value four times, and mixtures. */
function* lists(values) {
  yield [];
  for (const value of values) {
    const one = value();
    yield [one];
    yield [one, one, one, one, one, one];
  }
  // A linear congruential generator, begun anew for each function.
  let state = 1;
  for (let count = 0; count < MIXTURES; count += 1) {
    const list = [];
    const length = 2 + (count % 5);
    for (let place = 0; place < length; place += 1) {
      state = (state * 1103515245 + 12345) % 2 ** 31;
      list.push(values[Math.floor(state / 65536) % values.length]());
    }
    yield list;
  }
}

/** Where everything is reached from. */
async function roots() {
  const require = createRequire(import.meta.url);
  const { builtinModules } = require("node:module");
  const found = [];
  for (const name of builtinModules) {
    try {
      found.push([`node:${name}`, require(`node:${name}`)]);
    } catch (error) {
      found.push([`node:${name}`, error]);
    }
  }
  // A name that does not exist is refused.
  const bindings = [
    "async_wrap", "block_list", "buffer", "cares_wrap", "config", "constants", "contextify", "credentials", "crypto",
    "errors", "fs", "fs_dir", "fs_event_wrap", "heap_utils", "http_parser", "http2", "icu", "inspector", "js_stream",
    "messaging", "module_wrap", "native_module", "natives", "options", "os", "performance", "pipe_wrap",
    "process_methods", "report", "serdes", "signal_wrap", "spawn_sync", "stream_wrap", "string_decoder", "symbols",
    "task_queue", "tcp_wrap", "timers", "tls_wrap", "trace_events", "tty_wrap", "types", "udp_wrap", "url", "util",
    "uv", "v8", "worker", "zlib",
  ];
  for (const name of bindings) {
    try {
      found.push([`binding:${name}`, process.binding(name)]);
    } catch {
      // Nothing is reached through it.
    }
  }
  found.push(["process", process], ["Deno", globalThis.Deno], ["internal", globalThis.Deno?.[globalThis.Deno.internal]]);
  for (const name of ownKeys(globalThis).filter((key) => typeof key === "string").sort()) {
    if (["globalThis", "global", "self", "window", "process", "Deno"].includes(name)) continue;
    found.push([name, globalThis[name]]);
  }
  return found;
}

const isObject = (value) => (typeof value === "object" && value !== null) || typeof value === "function";

/** Functions below the roots with their path and the object they were found on. */
const DEPTH = 4;

function collect(roots) {
  const seen = new Set([Object.prototype, Function.prototype, Array.prototype, globalThis]);
  const functions = [];
  const queue = roots.map(([path, value]) => ({ path, value, owner: undefined, depth: 0 }));
  for (let next = 0; next < queue.length; next += 1) {
    const { path, value, owner, depth } = queue[next];
    if (!isObject(value) || seen.has(value)) continue;
    seen.add(value);
    if (typeof value === "function") functions.push({ path, value, owner });
    if (depth >= DEPTH || ArrayBuffer.isView(value)) continue;
    let keys;
    try {
      keys = ownKeys(value);
    } catch {
      continue;
    }
    for (const key of keys.slice(0, 500)) {
      if (key === "constructor" && seen.has(value.constructor)) continue;
      let entry;
      try {
        entry = getOwnPropertyDescriptor(value, key);
      } catch {
        continue;
      }
      if (!entry) continue;
      const at = `${path}.${String(key)}`;
      for (const accessor of [entry.get, entry.set]) {
        if (accessor) queue.push({ path: `${at}()`, value: accessor, owner: value, depth: depth + 1 });
      }
      // A getter's value, too: many modules are made when they are first asked for.
      let inner = entry.value;
      if (entry.get) {
        try {
          inner = value[key];
        } catch {
          continue;
        }
      }
      queue.push({ path: at, value: inner, owner: value, depth: depth + 1 });
    }
    const prototype = getPrototypeOf(value);
    if (prototype) queue.push({ path: `${path}.[[Prototype]]`, value: prototype, owner: value, depth: depth + 1 });
  }
  return functions;
}

function isSkipped(path) {
  // It replaces the timers by which the walk takes turns.
  if (path.endsWith("mockTimers)")) return true;
  // The global one ends a worker.
  if (path === "close") return true;
  return path.split(".").some((part) => SKIPPED.has(part.replace(/\(\)$/, "")));
}

/** Instances of a class that calls have made: methods are called on them, too. */
const MOST_INSTANCES = 2;

/** The calls after which the event loop has a turn. */
const CALLS_IN_A_TURN = 200;

/** Calls those from one number to another, and the methods of what these calls have made. `begin` hears the number and path
 * of each before. Returns how many there are in all. */
export async function walk({ begin, from, to }) {
  const found = collect(await roots());
  // The language's own are no operations, and compute for hours with numbers like these.
  const language = new Set(collect(Object.entries(ownLanguage())).map(({ value }) => value));
  const chosen = found.filter(({ path, value }) => !isSkipped(path) && !language.has(value));
  const instances = new Map();
  let calls = 0;
  const keep = (value) => {
    if (!isObject(value) || typeof value === "function") return;
    const prototype = getPrototypeOf(value);
    if (!prototype || language.has(prototype.constructor)) return;
    const others = instances.get(prototype) ?? [];
    if (others.length < MOST_INSTANCES) instances.set(prototype, [...others, value]);
    if (typeof value.then === "function") {
      try {
        value.then(undefined, () => undefined);
      } catch {
        // Not a promise after all.
      }
    }
    // What was opened may keep sending.
    try {
      value.on?.("error", () => undefined);
    } catch {
      // Not one that sends.
    }
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const attempt = async (call) => {
    calls += 1;
    try {
      const result = call();
      keep(result);
    } catch {
      // An error of JavaScript is what is wanted.
    }
    if (calls % CALLS_IN_A_TURN === 0) await turn();
  };
  const callAll = async ({ path, value, owner }, receivers) => {
    const values = SIZED.test(path.split(".").at(-1).replace(")", "")) ? small : all;
    for (const list of lists(values)) {
      for (const receiver of receivers) await attempt(() => apply(value, receiver, list));
      if (value.prototype && owner !== undefined) await attempt(() => construct(value, list));
    }
  };
  for (const [index, entry] of chosen.entries()) {
    if (index < from || index >= to) continue;
    begin(index, entry.path);
    await callAll(entry, [entry.owner, ...(instances.get(entry.owner) ?? [])]);
  }
  for (const [prototype, ones] of [...instances]) {
    for (const key of ownKeys(prototype)) {
      const path = `instance.${prototype.constructor?.name}.${String(key)}`;
      const entry = getOwnPropertyDescriptor(prototype, key);
      if (isSkipped(path) || key === "constructor") continue;
      for (const method of [entry.value, entry.get, entry.set]) {
        if (typeof method !== "function" || language.has(method)) continue;
        begin(chosen.length, path);
        await callAll({ path, value: method }, ones);
      }
    }
  }
  await turn();
  return chosen.length;
}

/** The globals of the language itself. */
function ownLanguage() {
  const names = [
    "Array", "ArrayBuffer", "Atomics", "BigInt", "BigInt64Array", "BigUint64Array", "Boolean", "DataView", "Date", "Error",
    "AggregateError", "EvalError", "RangeError", "ReferenceError", "SyntaxError", "TypeError", "URIError",
    "FinalizationRegistry", "Float16Array", "Float32Array", "Float64Array", "Function", "Int8Array", "Int16Array", "Int32Array", "Intl",
    "Iterator", "JSON", "Map", "Math", "Number", "Object", "Promise", "Proxy", "Reflect", "RegExp", "Set",
    "SharedArrayBuffer", "String", "Symbol", "Temporal", "Uint8Array", "Uint8ClampedArray", "Uint16Array", "Uint32Array",
    "WeakMap", "WeakRef", "WeakSet", "eval", "parseInt", "parseFloat", "isNaN", "isFinite", "escape", "unescape",
    "encodeURI", "encodeURIComponent", "decodeURI", "decodeURIComponent", "gc",
  ];
  return Object.fromEntries(names.map((name) => [name, globalThis[name]]));
}
