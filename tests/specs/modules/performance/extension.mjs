// performance: a clock that only goes forward, marks and measures.

import assert from "node:assert/strict";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  let last = performance.now();
  for (let i = 0; i < 1000; i += 1) {
    const now = performance.now();
    assert.ok(now >= last, `${now} after ${last}`);
    last = now;
  }
  const started = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 30));
  const passed = performance.now() - started;
  // One millisecond of rounding is what node allows itself, too.
  assert.ok(passed >= 29 && passed < 600_000, `${passed} ms`);
  assert.ok(Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 600_000);
  assert.equal(performance.toJSON().timeOrigin, performance.timeOrigin);

  const mark = performance.mark("a", { startTime: 10, detail: "here" });
  assert.deepEqual([mark.entryType, mark.name, mark.startTime, mark.duration, mark.detail], ["mark", "a", 10, 0, "here"]);
  performance.mark("b", { startTime: 35 });
  const measure = performance.measure("a to b", "a", "b");
  assert.deepEqual([measure.entryType, measure.startTime, measure.duration], ["measure", 10, 25]);
  assert.equal(performance.measure("given", { start: 1, duration: 4 }).duration, 4);
  assert.deepEqual(performance.getEntriesByType("measure").map((entry) => entry.name).sort(), ["a to b", "given"]);
  assert.throws(() => performance.measure("x", "never marked"), { name: "SyntaxError" });
  performance.clearMarks("a");
  assert.deepEqual(performance.getEntriesByType("mark").map((entry) => entry.name), ["b"]);
  performance.clearMarks();
  performance.clearMeasures();
  assert.equal(performance.getEntries().filter((entry) => /mark|measure/.test(entry.entryType)).length, 0);
  return `${measure.name} took ${measure.duration}`;
}

await joinSession({ tools: [{ name: "check_performance", description: "Checks performance", handler: check }] });
