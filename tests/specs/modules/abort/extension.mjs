// AbortController and AbortSignal: once, with a reason, by time, and by any of several.

import assert from "node:assert/strict";
import { joinSession } from "@github/copilot-sdk/extension";

async function check(_args, invocation) {
  const controller = new AbortController();
  const { signal } = controller;
  const events = [];
  signal.addEventListener("abort", (event) => events.push(event.type));
  signal.onabort = () => events.push("onabort");
  assert.deepEqual([signal.aborted, signal.reason], [false, undefined]);
  signal.throwIfAborted();
  controller.abort();
  controller.abort("a second time does nothing");
  assert.deepEqual(events, ["abort", "onabort"]);
  assert.equal(signal.aborted, true);
  assert.ok(signal.reason instanceof DOMException);
  assert.deepEqual([signal.reason.name, signal.reason.code], ["AbortError", 20]);
  assert.throws(() => signal.throwIfAborted(), { name: "AbortError" });

  const own = new Error("own");
  assert.equal(AbortSignal.abort(own).reason, own);

  const timeout = AbortSignal.timeout(20);
  await new Promise((resolve) => timeout.addEventListener("abort", resolve));
  assert.equal(timeout.reason.name, "TimeoutError");

  const [first, second] = [new AbortController(), new AbortController()];
  const any = AbortSignal.any([first.signal, second.signal]);
  assert.equal(any.aborted, false);
  second.abort("second");
  first.abort("first");
  assert.equal(any.reason, "second");
  assert.equal(AbortSignal.any([AbortSignal.abort("at once")]).reason, "at once");

  // A listener that goes away when a signal says so.
  const target = new EventTarget();
  const off = new AbortController();
  let calls = 0;
  target.addEventListener("x", () => { calls += 1; }, { signal: off.signal });
  target.dispatchEvent(new Event("x"));
  off.abort();
  target.dispatchEvent(new Event("x"));
  assert.equal(calls, 1);
  assert.throws(() => new AbortSignal(), TypeError);
  if (invocation.signal) assert.ok(invocation.signal instanceof AbortSignal);
  return `${events.length} events, then ${timeout.reason.name}`;
}

await joinSession({ tools: [{ name: "check_abort", description: "Checks AbortController", handler: check }] });
