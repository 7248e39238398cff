// node:timers/promises: timers to await, to iterate over and to abort.

import assert from "node:assert/strict";
import { promises } from "node:timers";
import * as prefixed from "node:timers/promises";
import * as bare from "timers/promises";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  assert.equal(bare, prefixed);
  assert.equal(promises.setTimeout, prefixed.setTimeout);
  const { scheduler, setImmediate, setInterval, setTimeout } = prefixed;

  const start = performance.now();
  assert.equal(await setTimeout(40, "value"), "value");
  // One millisecond of rounding is what node allows itself, too.
  assert.ok(performance.now() - start >= 39, `${performance.now() - start} ms`);
  assert.equal(await setImmediate("soon"), "soon");
  const order = await Promise.all([30, 10, 20].map(async (ms, index) => [index, await setTimeout(ms, ms)]));
  assert.deepEqual(order, [[0, 30], [1, 10], [2, 20]]);
  assert.equal(await Promise.race([setTimeout(10_000, "late"), setTimeout(5, "early")]), "early");

  let ticks = 0;
  for await (const value of setInterval(5, "tick")) {
    assert.equal(value, "tick");
    ticks += 1;
    if (ticks === 3) break;
  }

  const stop = new AbortController();
  const waiting = setTimeout(1_000_000, null, { signal: stop.signal });
  stop.abort(new Error("enough"));
  await assert.rejects(waiting, (error) => {
    assert.equal(error.name, "AbortError");
    assert.equal(error.code, "ABORT_ERR");
    assert.equal(error.cause.message, "enough");
    return true;
  });
  await assert.rejects(setImmediate(null, { signal: AbortSignal.abort() }), { name: "AbortError" });
  await scheduler.wait(5);
  await scheduler.yield();
  return `${ticks} ticks`;
}

await joinSession({ tools: [{ name: "check_timers_promises", description: "Checks node:timers/promises", handler: check }] });
