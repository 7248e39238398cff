// node:timers: they fire in order, repeat, and stop when they are cleared.

import * as prefixed from "node:timers";
import * as bare from "timers";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

async function check() {
  same("timers is node:timers", bare === prefixed && bare.default === prefixed.default, true);
  const { clearImmediate, clearInterval, clearTimeout, setImmediate, setInterval, setTimeout } = prefixed;
  const after = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  const fired = [];
  const note = (...words) => fired.push(words.join(" "));
  const cleared = [setTimeout(note, 10, "cleared"), setInterval(note, 10, "cleared"), setImmediate(note, "cleared")];
  clearTimeout(cleared[0]);
  clearInterval(cleared[1]);
  clearImmediate(cleared[2]);
  // Far enough apart for a pause between these two lines.
  setTimeout(note, 1000, "third");
  setTimeout(note, 30, "second", "with", "arguments");
  setImmediate(note, "first");
  const start = performance.now();
  await after(1000);
  // One millisecond of rounding is what node allows itself, too.
  same("the time that passed", performance.now() - start >= 999, true);
  same("the order", fired, ["first", "second with arguments", "third"]);

  let ticks = 0;
  await new Promise((resolve) => {
    const interval = setInterval(() => {
      ticks += 1;
      if (ticks === 3) {
        clearInterval(interval);
        resolve();
      }
    }, 5);
  });
  await after(30);
  same("ticks after clearInterval", ticks, 3);

  const order = [];
  await new Promise((resolve) => {
    setImmediate(() => {
      setTimeout(() => order.push("timeout"), 0);
      setImmediate(() => order.push("immediate"));
      process.nextTick(() => order.push("tick"));
      queueMicrotask(() => order.push("microtask"));
      order.push("now");
      const until = () => (order.length === 5 ? resolve() : setTimeout(until, 5));
      until();
    });
  });
  same("what comes before what", order.slice(0, 3), ["now", "tick", "microtask"]);
  same("what comes afterwards", order.slice(3).sort(), ["immediate", "timeout"]);

  const timer = setTimeout(note, 1_000_000);
  same("ref and unref", [timer.hasRef(), timer.unref().hasRef(), timer.ref().hasRef()], [true, false, true]);
  same("the timer itself", [typeof timer[Symbol.toPrimitive](), timer.refresh() === timer], ["number", true]);
  clearTimeout(timer);
  clearTimeout(Number(setTimeout(note, 10, "cleared by its number")));
  await after(30);
  same("what fired in the end", fired.length, 3);

  return `${fired[0]} ${fired[2]}, ${ticks} ticks`;
}

await joinSession({ tools: [{ name: "check_timers", description: "Checks node:timers", handler: check }] });
