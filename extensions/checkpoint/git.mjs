// Snapshots of a working tree as commits that no branch knows, and the way back to them. Works on a
// copy of the index: HEAD, the index and, but for `restore`, the files stay as they are.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, lstat, mkdtemp, rm, stat, utimes } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

const TIMEOUT_MS = 120_000;
const KEEP = 50;

/**
 * @typedef {{ folder: string, root: string, index: string }} Repository
 * @typedef {(args: string[], input?: string, cwd?: string) => Promise<string>} Git runs it on an index of its own
 */

/** A folder that has no working tree; says why. */
export class NoRepository extends Error {}

// No hook and no monitor of the repository runs, and no setting of the person's is needed or obeyed
// that would change what is stored.
const SETTINGS = [
  `core.hooksPath=${os.devNull}`, "core.fsmonitor=false", "core.splitIndex=false", "core.safecrlf=false", "core.quotePath=false",
  "submodule.recurse=false", "advice.addEmbeddedRepo=false", "gc.auto=0", "i18n.commitEncoding=utf-8",
].flatMap((setting) => ["-c", setting]);

/** @param {Record<string, string>} extra */
function environment(extra) {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_")); // a caller's GIT_DIR is not ours
  const who = { NAME: "checkpoint", EMAIL: "checkpoint@localhost" };
  const identity = Object.entries(who).flatMap(([key, value]) => [[`GIT_AUTHOR_${key}`, value], [`GIT_COMMITTER_${key}`, value]]);
  return { ...Object.fromEntries([...inherited, ...identity]), LC_ALL: "C", GIT_TERMINAL_PROMPT: "0", GIT_OPTIONAL_LOCKS: "0", ...extra };
}

/**
 * Runs git and gives its output; a failure is an Error with git's own words and its exit code.
 * @param {string} cwd
 * @param {string[]} args
 * @param {{ input?: string, env?: Record<string, string> }} [options]
 * @returns {Promise<string>}
 */
function git(cwd, args, { input = "", env = {} } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn("git", [...SETTINGS, ...args], { cwd, env: environment(env), stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
    /** @type {Buffer[]} */
    const out = [];
    /** @type {Buffer[]} */
    const err = [];
    const timer = setTimeout(() => child.kill("SIGKILL"), TIMEOUT_MS);
    child.stdout.on("data", (chunk) => out.push(chunk));
    child.stderr.on("data", (chunk) => err.push(chunk));
    child.stdin.on("error", () => {}); // git may end without reading all of it
    child.stdin.end(input);
    child.on("error", (/** @type {NodeJS.ErrnoException} */ error) => {
      clearTimeout(timer);
      reject(error.code === "ENOENT" ? new NoRepository("git is not installed") : error);
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      if (code === 0) return resolve(Buffer.concat(out).toString("utf8"));
      const message = signal ? `git ${args[0]} was ended by ${signal}` : Buffer.concat(err).toString("utf8").trim() || `git ${args[0]} failed`;
      reject(Object.assign(new Error(message), { exitCode: code }));
    });
  });
}

/**
 * The working tree that a folder belongs to, or belonged to before it was removed.
 * @param {string} given
 * @returns {Promise<Repository>}
 */
export async function findRepository(given) {
  let folder = given;
  while (!existsSync(folder) && folder !== path.dirname(folder)) folder = path.dirname(folder);
  let lines;
  try {
    lines = (await git(folder, ["rev-parse", "--show-toplevel", "--git-path", "index"])).split("\n");
  } catch (/** @type {any} */ error) {
    if (error instanceof NoRepository) throw error;
    throw new NoRepository(/not a git repository/.test(error.message) ? `${folder} is not in a git repository` : error.message.split("\n")[0]);
  }
  return { folder, root: lines[0], index: path.resolve(folder, lines[1]) };
}

/**
 * A copy of the index, brought up to date with all files that are not ignored.
 * @template Result
 * @param {Repository} repository
 * @param {(run: Git) => Promise<Result>} work
 */
async function withIndex(repository, work) {
  const folder = await mkdtemp(path.join(os.tmpdir(), "checkpoint-"));
  try {
    const file = path.join(folder, "index");
    /** @type {Git} */
    const run = (args, input, cwd = repository.root) => git(cwd, args, { input, env: { GIT_INDEX_FILE: file } });
    try {
      await copyFile(repository.index, file);
      // git takes a file that is older than the index for unchanged; a copy that looks newer than it is would hide changes.
      const { atime, mtime } = await stat(repository.index);
      await utimes(file, atime, mtime);
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOENT") throw error; // nothing was ever added
    }
    // Goes on at a file that cannot be read, and says so with 1; such a file is left alone.
    await run(["add", "--all", "--ignore-errors", "--", ":/"]).catch((error) => {
      if (error.exitCode !== 1) throw error;
    });
    return await work(run);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param {string} sessionId */
const prefixOf = (sessionId) => `refs/tenon/checkpoints/${sessionId.replace(/[^A-Za-z0-9_-]+/g, "-") || "session"}`;

/**
 * All checkpoints of a session, oldest first: number, ref, commit, tree, time, title, files.
 * @param {Repository} repository
 * @param {string} sessionId
 */
export async function list(repository, sessionId) {
  const prefix = prefixOf(sessionId);
  const format = ["%(refname)", "%(objectname)", "%(tree)", "%(committerdate:unix)", "%(contents:subject)", "%(contents:body)"].join("%1f");
  const text = await git(repository.root, ["for-each-ref", `--format=${format}%1e`, `${prefix}/`]);
  return text
    .split("\x1e")
    .map((record) => record.trim().split("\x1f"))
    .filter((fields) => fields.length === 6)
    .map(([ref, commit, tree, time, title, body]) => ({
      number: Number(ref.slice(prefix.length + 1)),
      ref, commit, tree, title,
      time: new Date(Number(time) * 1000),
      files: Number(/^files: (\d+)/m.exec(body)?.[1] ?? 0),
    }))
    .filter(({ number }) => Number.isSafeInteger(number))
    .sort((a, b) => a.number - b.number);
}

/**
 * Stores the tree of an index as the next checkpoint; null when it is that of the last one.
 * @param {Repository} repository
 * @param {string} sessionId
 * @param {string} title
 * @param {Git} run
 */
async function store(repository, sessionId, title, run) {
  const tree = (await run(["write-tree"])).trim();
  const all = await list(repository, sessionId);
  const last = all.at(-1);
  if (last?.tree === tree) return null;
  const head = await run(["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).then((text) => text.trim(), () => null);
  const emptyTree = async () => (await run(["hash-object", "-t", "tree", "-w", "--stdin"])).trim();
  const before = last?.tree ?? (head ? `${head}^{tree}` : await emptyTree());
  const changed = await run(["diff-tree", "-r", "-z", "--no-renames", "--name-only", before, tree]);
  const files = changed.split("\0").filter(Boolean).length;
  const message = `${title}\n\nsession: ${sessionId}\nfiles: ${files}\n`;
  const commit = (await run(["commit-tree", tree, ...(head ? ["-p", head] : []), "-F", "-"], message)).trim();
  const number = last ? last.number + 1 : 0;
  await run(["update-ref", `${prefixOf(sessionId)}/${number}`, commit, ""]); // "": it must not exist yet
  // The first one is the way back to the beginning, so it stays; the oldest of the others go.
  const surplus = all.slice(1, Math.max(1, all.length + 2 - KEEP));
  if (surplus.length > 0) await run(["update-ref", "--stdin"], surplus.map(({ ref, commit: old }) => `delete ${ref} ${old}\n`).join(""));
  return { number, files, title };
}

/**
 * Takes a checkpoint of the files as they are.
 * @param {Repository} repository
 * @param {string} sessionId
 * @param {string} title
 */
export function snapshot(repository, sessionId, title) {
  return withIndex(repository, (run) => store(repository, sessionId, title, run));
}

/**
 * Makes the working tree what it was; gives the checkpoint of what it was before, and the count of files.
 * @param {Repository} repository
 * @param {string} sessionId
 * @param {number} number
 */
export function restore(repository, sessionId, number) {
  return withIndex(repository, async (run) => {
    const all = await list(repository, sessionId);
    const target = all.find((each) => each.number === number);
    if (!target) {
      const known = all.length > 0 ? `There are ${all[0].number} to ${all[all.length - 1].number}.` : "There are none yet.";
      throw new RangeError(`There is no checkpoint ${number}. ${known}`);
    }
    // A file of the target that is ignored now would be overwritten unseen: it is stored first.
    const present = new Set((await run(["ls-files", "-z"])).split("\0"));
    const missing = (await run(["ls-tree", "-r", "-z", "--name-only", "--full-tree", target.commit])).split("\0").filter((name) => name && !present.has(name));
    const hidden = [];
    for (const name of missing) {
      const found = await lstat(path.join(repository.root, name)).catch(() => null);
      if (found && !found.isDirectory()) hidden.push(name);
    }
    if (hidden.length > 0) {
      await run(["--literal-pathspecs", "add", "--force", "--pathspec-from-file=-", "--pathspec-file-nul"], hidden.join("\0"));
    }
    const saved = await store(repository, sessionId, `before restoring ${number}`, run);
    const now = (await run(["write-tree"])).trim();
    const changed = await run(["diff-tree", "-r", "-z", "--no-renames", "--name-only", now, target.tree]);
    // From one tree to the other: touches what differs, removes what was not there, refuses to
    // overwrite what neither of them knows. Git keeps the folder that it runs in, though empty.
    await run(["read-tree", "-m", "-u", now, target.tree], "", repository.folder);
    return { saved, files: changed.split("\0").filter(Boolean).length, target };
  });
}
