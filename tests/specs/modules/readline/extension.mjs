// node:readline: lines out of streams, however they were cut, and questions with answers.

import assert from "node:assert/strict";
import { once } from "node:events";
import * as prefixed from "node:readline";
import * as promises from "node:readline/promises";
import { PassThrough, Readable } from "node:stream";
import * as bare from "readline";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  assert.equal(bare, prefixed);
  const readline = prefixed.default;

  // Cut in the middle of a line, of a line end and of a character.
  const euro = Buffer.from("€");
  const input = Readable.from([Buffer.from("one\ntw"), Buffer.from("o\r"), Buffer.from("\n"), euro.subarray(0, 1), euro.subarray(1), Buffer.from("\n\nlast")]);
  const lines = [];
  for await (const line of readline.createInterface({ input, crlfDelay: Infinity })) lines.push(line);
  assert.deepEqual(lines, ["one", "two", "€", "", "last"]);

  const [keys, screen] = [new PassThrough(), new PassThrough()];
  let shown = "";
  screen.on("data", (chunk) => { shown += chunk; });
  const reader = readline.createInterface({ input: keys, output: screen, prompt: "$ " });
  const answer = new Promise((resolve) => reader.question("Name? ", resolve));
  keys.write("Ada\n");
  assert.equal(await answer, "Ada");
  reader.prompt();
  const line = once(reader, "line");
  keys.write("ls -l\n");
  assert.deepEqual(await line, ["ls -l"]);
  assert.equal(shown, "Name? $ ");
  const closed = once(reader, "close");
  keys.end();
  await closed;

  const typed = new PassThrough();
  const asker = promises.createInterface({ input: typed, output: new PassThrough() });
  const pending = asker.question("Sure? ");
  typed.write("yes\n");
  assert.equal(await pending, "yes");
  await assert.rejects(asker.question("Again? ", { signal: AbortSignal.abort() }), { name: "AbortError" });
  asker.close();

  const moved = new PassThrough();
  readline.cursorTo(moved, 2, 3);
  assert.equal(moved.read().toString(), "\x1b[4;3H");
  readline.clearLine(moved, 0);
  assert.equal(moved.read().toString(), "\x1b[2K");
  return lines.filter(Boolean).join(" ");
}

await joinSession({ tools: [{ name: "check_readline", description: "Checks node:readline", handler: check }] });
