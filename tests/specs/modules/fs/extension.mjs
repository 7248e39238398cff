// node:fs: writes, reads, renames and lists real files, and sees a change through fs.watch.

import { once } from "node:events";
import * as prefixed from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as bare from "fs";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

function failureOf(action) {
  try {
    action();
  } catch (error) {
    return [error.code, error.syscall, error.path, error.errno];
  }
  throw new Error("nothing was thrown");
}

async function check() {
  same("fs is node:fs", bare === prefixed && bare.default === prefixed.default, true);
  const fs = prefixed.default;
  const folder = fs.mkdtempSync(join(tmpdir(), "tenon-fs-"));
  try {
    readsAndWrites(fs, folder);
    await callsBack(fs, folder);
    await streams(fs, folder);
    return await watches(fs, folder);
  } finally {
    fs.rmSync(folder, { recursive: true });
    same("the folder after rm", fs.existsSync(folder), false);
  }
}

function readsAndWrites(fs, folder) {
  const note = join(folder, "note.txt");
  fs.writeFileSync(note, "grüße\n", { mode: 0o640 });
  same("the mode", fs.statSync(note).mode & 0o777, 0o640);
  fs.appendFileSync(note, "more\n");
  same("what was written", fs.readFileSync(note, "utf8"), "grüße\nmore\n");
  same("the bytes", fs.readFileSync(note).length, 13);
  const stat = fs.statSync(note);
  same("stat", [stat.isFile(), stat.isDirectory(), stat.size], [true, false, 13]);
  same("the time of change", Math.abs(stat.mtimeMs - Date.now()) < 60_000 && stat.mtime instanceof Date, true);
  same("a size as bigint", fs.statSync(note, { bigint: true }).size === 13n, true);

  const file = fs.openSync(note, "r+");
  const buffer = Buffer.alloc(4);
  same("bytes read at a position", [fs.readSync(file, buffer, 0, 4, 8), buffer.toString()], [4, "more"]);
  same("bytes written at a position", fs.writeSync(file, Buffer.from("xMx"), 1, 1, 8), 1);
  fs.ftruncateSync(file, 12);
  fs.closeSync(file);
  same("what was changed in place", fs.readFileSync(note, "utf8"), "grüße\nMore");
  same("use of a closed file", failureOf(() => fs.fstatSync(file))[0], "EBADF");

  const moved = join(folder, "deep/er/moved.txt");
  fs.mkdirSync(join(folder, "deep/er"), { recursive: true });
  fs.renameSync(note, moved);
  same("the old name", fs.existsSync(note), false);
  fs.copyFileSync(moved, join(folder, "copy.txt"));
  fs.symlinkSync("deep/er/moved.txt", join(folder, "link"));
  same("readlink", fs.readlinkSync(join(folder, "link")), "deep/er/moved.txt");
  same("realpath", fs.realpathSync(join(folder, "link")), fs.realpathSync(moved));
  same("lstat", fs.lstatSync(join(folder, "link")).isSymbolicLink(), true);
  const entries = fs.readdirSync(folder, { withFileTypes: true });
  const kinds = entries.map((entry) => `${entry.name}${entry.isDirectory() ? "/" : entry.isSymbolicLink() ? "@" : ""}`);
  same("readdir", kinds.sort(), ["copy.txt", "deep/", "link@"]);
  same("recursive readdir", fs.readdirSync(folder, { recursive: true }).sort(), [
    "copy.txt", "deep", "deep/er", "deep/er/moved.txt", "link",
  ]);

  const missing = join(folder, "missing");
  same("a missing file", failureOf(() => fs.readFileSync(missing)), ["ENOENT", "open", missing, -2]);
  same("a full folder", failureOf(() => fs.rmdirSync(join(folder, "deep")))[0], "ENOTEMPTY");
  same("an existing file", failureOf(() => fs.writeFileSync(moved, "", { flag: "wx" }))[0], "EEXIST");
}

async function callsBack(fs, folder) {
  const text = await new Promise((resolve, reject) => {
    fs.readFile(join(folder, "copy.txt"), "utf8", (error, text) => (error ? reject(error) : resolve(text)));
  });
  same("what a callback gets", text, "grüße\nMore");
  const code = await new Promise((resolve) => fs.stat(join(folder, "missing"), (error) => resolve(error?.code)));
  same("the error a callback gets", code, "ENOENT");
}

async function streams(fs, folder) {
  const path = join(folder, "stream.txt");
  const writer = fs.createWriteStream(path);
  for (let line = 0; line < 1000; line += 1) writer.write(`line ${line}\n`);
  writer.end();
  await once(writer, "close");
  same("bytes streamed out", [writer.bytesWritten, fs.statSync(path).size], [8890, 8890]);
  let text = "";
  for await (const chunk of fs.createReadStream(path, { encoding: "utf8", start: 7, end: 20, highWaterMark: 4 })) text += chunk;
  same("a part streamed in", text, "line 1\nline 2\n");
}

// Started, changed and awaited with no pause in between: a change right after watch() counts.
async function watches(fs, folder) {
  const watched = join(folder, "watched");
  fs.mkdirSync(watched);
  const watcher = fs.watch(watched);
  const seen = new Promise((resolve, reject) => {
    watcher.on("change", (event, name) => name === "news.txt" && resolve(event));
    watcher.on("error", reject);
  });
  fs.writeFileSync(join(watched, "news.txt"), "extra");
  const event = await seen;
  const closed = once(watcher, "close");
  watcher.close();
  await closed;
  return `${event} of news.txt`;
}

await joinSession({ tools: [{ name: "check_fs", description: "Checks node:fs", handler: check }] });
