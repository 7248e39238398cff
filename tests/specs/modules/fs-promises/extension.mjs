// node:fs/promises: file handles, copies, folders and the watcher that is an async iterator.

import * as prefixed from "node:fs/promises";
import { promises } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as bare from "fs/promises";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

const failureOf = (promise) => promise.then(
  () => { throw new Error("nothing was rejected"); },
  (error) => [error instanceof Error, error.code, error.syscall],
);

async function check() {
  same("fs/promises is node:fs/promises", bare === prefixed && bare.default === prefixed.default, true);
  const fs = prefixed.default;
  same("fs.promises is node:fs/promises", promises === fs, true);
  const folder = await fs.mkdtemp(join(tmpdir(), "tenon-fsp-"));
  try {
    await readsAndWrites(fs, folder);
    const lines = await usesHandles(fs, folder);
    const event = await watches(fs, folder);
    return `${lines} lines, then ${event}`;
  } finally {
    await fs.rm(folder, { recursive: true });
    same("access after rm", (await failureOf(fs.access(folder)))[1], "ENOENT");
  }
}

async function readsAndWrites(fs, folder) {
  const deep = join(folder, "a/b");
  same("the first folder made", await fs.mkdir(deep, { recursive: true }), join(folder, "a"));
  const file = join(deep, "one.txt");
  await fs.writeFile(file, ["one\n", "two\n"]); // any iterable of chunks
  await fs.appendFile(file, Buffer.from("three\n"));
  same("what was written", await fs.readFile(file, { encoding: "utf8" }), "one\ntwo\nthree\n");
  await fs.chmod(file, 0o600);
  const stat = await fs.stat(file);
  same("stat", [stat.size, stat.mode & 0o777, stat.isFile()], [14, 0o600, true]);
  await fs.utimes(file, 1_000, 2_000);
  same("utimes", (await fs.stat(file)).mtimeMs, 2_000_000);

  await fs.rename(file, join(folder, "moved.txt"));
  same("the old name", await failureOf(fs.stat(file)), [true, "ENOENT", "stat"]);
  await fs.writeFile(file, "x");
  await fs.cp(join(folder, "a"), join(folder, "copy"), { recursive: true });
  same("a copied tree", await fs.readFile(join(folder, "copy/b/one.txt"), "utf8"), "x");
  const names = [];
  for await (const entry of await fs.opendir(folder)) names.push(entry.name);
  same("opendir", names.sort(), ["a", "copy", "moved.txt"]);
  same("a folder read as a file", (await failureOf(fs.readFile(folder)))[1], "EISDIR");
}

async function usesHandles(fs, folder) {
  const handle = await fs.open(join(folder, "moved.txt"), "r+");
  same("the descriptor", Number.isInteger(handle.fd) && handle.fd > 2, true);
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(3), 0, 3, 4);
  same("bytes at a position", [bytesRead, buffer.toString()], [3, "two"]);
  same("bytes written", (await handle.write("TWO", 4)).bytesWritten, 3);
  await handle.sync();
  same("a handle's stat", (await handle.stat()).size, 14);
  await handle.close();
  const reopened = await fs.open(join(folder, "moved.txt"));
  const lines = [];
  for await (const line of reopened.readLines()) lines.push(line);
  same("lines", lines, ["one", "TWO", "three"]);
  const aborted = fs.readFile(join(folder, "moved.txt"), { signal: AbortSignal.abort() });
  same("an aborted read", await aborted.then(() => "read", (error) => error.name), "AbortError");
  return lines.length;
}

async function watches(fs, folder) {
  const stop = new AbortController();
  const events = fs.watch(folder, { signal: stop.signal });
  // The watcher starts with the first next(), so that comes before the change.
  let pending = events.next();
  await fs.writeFile(join(folder, "seen.txt"), "now");
  for (;;) {
    const { value, done } = await pending;
    same("the end of the events", done, false);
    if (value.filename === "seen.txt") break;
    pending = events.next();
  }
  const drain = async () => {
    for await (const event of events) same("a late event", event.filename, "seen.txt");
  };
  const end = drain().then(() => "no error", (error) => error.name);
  stop.abort();
  same("the watcher's end after abort", await end, "AbortError");
  return "seen.txt changed";
}

await joinSession({ tools: [{ name: "check_fs_promises", description: "Checks node:fs/promises", handler: check }] });
