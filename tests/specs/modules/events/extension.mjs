// node:events: emitters in the order they promise, and the helpers that make promises of them.

import * as prefixed from "node:events";
import * as bare from "events";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

async function check() {
  same("events is node:events", bare === prefixed && bare.default === prefixed.default, true);
  const { EventEmitter, errorMonitor, getEventListeners, on, once } = prefixed;
  same("the default is the class", prefixed.default === EventEmitter && EventEmitter.EventEmitter === EventEmitter, true);

  const emitter = new EventEmitter();
  const order = [];
  emitter.on("x", (value) => order.push(`b${value}`));
  emitter.prependListener("x", (value) => order.push(`a${value}`));
  emitter.once("x", (value) => order.push(`once${value}`));
  same("emit tells whether anyone listened", [emitter.emit("x", 1), emitter.emit("x", 2), emitter.emit("y")], [true, true, false]);
  same("the order", order, ["a1", "b1", "once1", "a2", "b2"]);
  same("listeners", [emitter.listenerCount("x"), emitter.eventNames()], [2, ["x"]]);
  const late = () => order.push("late");
  emitter.on("x", late).off("x", late).emit("x", 3);
  same("off", order.includes("late"), false);
  emitter.removeAllListeners("x");
  same("removeAllListeners", emitter.emit("x"), false);

  let thrown;
  const seen = [];
  emitter.on(errorMonitor, (error) => seen.push(error.message));
  try {
    emitter.emit("error", new Error("nobody listens"));
  } catch (error) {
    thrown = error.message;
  }
  same("an error that nobody handles", [thrown, seen], ["nobody listens", ["nobody listens"]]);

  setImmediate(() => emitter.emit("ready", 1, "two"));
  same("once as a promise", await once(emitter, "ready"), [1, "two"]);
  setImmediate(() => emitter.emit("error", new RangeError("bad")));
  same("once and an error", await once(emitter, "ready").catch((error) => error.message), "bad");
  const stop = new AbortController();
  const waiting = once(emitter, "never", { signal: stop.signal }).catch((error) => error.name);
  stop.abort();
  same("once that is aborted", [await waiting, emitter.listenerCount("never")], ["AbortError", 0]);

  const received = [];
  setImmediate(() => {
    for (const word of ["one", "two", "stop"]) emitter.emit("word", word);
  });
  for await (const [word] of on(emitter, "word")) {
    if (word === "stop") break;
    received.push(word);
  }
  same("on as an iterator", [received, emitter.listenerCount("word")], [["one", "two"], 0]);

  const careful = new EventEmitter({ captureRejections: true });
  careful.on("work", async () => { throw new Error("rejected"); });
  const captured = once(careful, "error");
  careful.emit("work");
  same("a captured rejection", (await captured)[0].message, "rejected");

  const target = new EventTarget();
  const listener = () => {};
  target.addEventListener("z", listener);
  same("getEventListeners", getEventListeners(target, "z")[0] === listener, true);
  setImmediate(() => target.dispatchEvent(new Event("z")));
  same("once on an EventTarget", (await once(target, "z"))[0].type, "z");

  const many = new EventEmitter().setMaxListeners(1);
  const warned = once(process, "warning");
  many.on("leak", () => {}).on("leak", () => {});
  same("a leak is warned of", (await warned)[0].name, "MaxListenersExceededWarning");
  same("getMaxListeners", [many.getMaxListeners(), EventEmitter.defaultMaxListeners], [1, 10]);

  return `${order.join(" ")}, then ${received.length} words`;
}

await joinSession({ tools: [{ name: "check_events", description: "Checks node:events", handler: check }] });
