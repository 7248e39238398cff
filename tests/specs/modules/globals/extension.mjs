// Node's globals are there without an import, and are the modules' own.

import * as buffer from "node:buffer";
import * as timers from "node:timers";
import * as nodeProcess from "node:process";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

async function check() {
  same("global is globalThis", globalThis.global === globalThis, true);
  same("process", globalThis.process === nodeProcess.default && Object.prototype.toString.call(process), "[object process]");
  same("Buffer", [Buffer === buffer.Buffer, Buffer.from("aGk=", "base64").toString()], [true, "hi"]);
  same("Blob and atob", [Blob === buffer.Blob, atob === buffer.atob], [true, true]);

  // Node's timers are objects, and code calls their methods.
  const timer = setTimeout(() => {}, 1_000_000);
  const interval = setInterval(() => {}, 1_000_000);
  const immediate = setImmediate(() => {});
  same("timers are objects", [timer, interval, immediate].map((one) => typeof one.unref().hasRef), ["function", "function", "function"]);
  same("they are not held", [timer, interval, immediate].map((one) => one.hasRef()), [false, false, false]);
  clearTimeout(timer);
  clearInterval(interval);
  clearImmediate(immediate);
  const names = ["setTimeout", "setInterval", "setImmediate", "clearTimeout", "clearInterval", "clearImmediate"];
  same("the timers of node:timers", names.filter((name) => globalThis[name] !== timers[name]), []);

  const order = [];
  await new Promise((resolve) => {
    setImmediate(() => {
      queueMicrotask(() => order.push("microtask"));
      process.nextTick(() => order.push("tick"));
      setTimeout(() => { order.push("timeout"); resolve(); }, 1);
    });
  });
  same("the order", order, ["tick", "microtask", "timeout"]);

  const listed = [];
  const print = console.log;
  print.call(console, "a line for the log");
  for (const name of ["log", "info", "warn", "error", "debug", "table", "time", "group", "assert", "trace"]) {
    if (typeof console[name] !== "function") listed.push(name);
  }
  same("what console lacks", listed, []);
  // As in any ES module of node's.
  same("no CommonJS here", [typeof require, typeof module, typeof exports, typeof __dirname], Array(4).fill("undefined"));
  return order.join(" ");
}

await joinSession({ tools: [{ name: "check_globals", description: "Checks node's globals", handler: check }] });
