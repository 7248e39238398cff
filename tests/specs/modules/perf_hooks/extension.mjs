// node:perf_hooks: marks and measures, observers that hear of them, and histograms.

import assert from "node:assert/strict";
import * as prefixed from "node:perf_hooks";
import { setTimeout as wait } from "node:timers/promises";
import * as bare from "perf_hooks";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  assert.equal(bare, prefixed);
  const { PerformanceObserver, createHistogram, monitorEventLoopDelay, performance } = prefixed;
  assert.equal(performance, globalThis.performance);
  assert.ok(PerformanceObserver.supportedEntryTypes.includes("measure"));

  const heard = new Promise((resolve) => {
    const observer = new PerformanceObserver((list) => {
      observer.disconnect();
      resolve(list.getEntries().map((entry) => `${entry.entryType} ${entry.name}`));
    });
    observer.observe({ entryTypes: ["mark", "measure"] });
  });
  performance.mark("start", { detail: { why: "spec" } });
  await wait(20);
  performance.mark("end");
  const measure = performance.measure("span", "start", "end");
  assert.ok(measure.duration >= 19 && measure.duration < 600_000, `${measure.duration} ms`);
  assert.deepEqual(performance.getEntriesByName("start")[0].detail, { why: "spec" });
  const entries = await heard;
  assert.ok(entries.includes("mark start"), entries.join());
  performance.clearMarks();
  performance.clearMeasures("span");
  assert.deepEqual([performance.getEntriesByType("mark"), performance.getEntriesByName("span")], [[], []]);

  const histogram = createHistogram();
  for (const value of [1, 2, 3, 4, 100]) histogram.record(value);
  assert.deepEqual([histogram.count, histogram.min, histogram.max, histogram.mean, histogram.percentile(50)], [5, 1, 100, 22, 3]);

  const delay = monitorEventLoopDelay({ resolution: 5 });
  delay.enable();
  // On a busy machine the first sample takes a while.
  while (delay.count === 0) await wait(10);
  delay.disable();
  assert.ok(delay.count > 0 && delay.max >= delay.min, `${delay.count} samples`);

  const timed = performance.timerify((a, b) => a + b);
  assert.equal(timed(1, 2), 3);
  const { utilization } = performance.eventLoopUtilization();
  assert.ok(utilization >= 0 && utilization <= 1, String(utilization));
  assert.ok(performance.timeOrigin <= Date.now() && performance.now() > 0);
  return `${entries[0]}, mean ${histogram.mean}`;
}

await joinSession({ tools: [{ name: "check_perf_hooks", description: "Checks node:perf_hooks", handler: check }] });
