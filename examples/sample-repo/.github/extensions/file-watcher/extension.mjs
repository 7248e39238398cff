// file-watcher: remembers which files changed while the agent was busy. Shows work that goes on
// between tool calls (the host keeps the event loop running) and is put away on SIGTERM.
//
// Try it:  tenon call recent_changes --args '{"wait_seconds":10}'   and save a file meanwhile

import { lstatSync, readdirSync, watch } from "node:fs";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { joinSession } from "@github/copilot-sdk/extension";

const SKIP = new Set([".git", "node_modules", "target", "dist", ".venv", "__pycache__"]);
const MAX_DIRECTORIES = 256; // one watch each; the kernel's supply is limited
const MAX_REMEMBERED = 500;
const MAX_WAIT_S = 60;
const SETTLE_MS = 50; // for the rest of a burst to arrive

const root = process.cwd();
const startedAt = Date.now();
/** @typedef {"created" | "changed" | "deleted"} Kind */

/** @type {Map<string, import("node:fs").FSWatcher>} by directory */
const watchers = new Map();
/** @type {Set<string>} files that exist, to tell "created" from "changed" */
const known = new Set();
/** @type {Map<string, { kind: Kind, at: number, order: number }>} by relative path, oldest first */
const changes = new Map();
/** @type {Set<() => void>} callbacks of calls that wait for the next change */
const waiting = new Set();
let counter = 0;

/** @param {string} file @param {Kind} kind */
function record(file, kind) {
  const name = path.relative(root, file);
  const before = changes.get(name);
  // An editor's save is a burst of events. One entry per file is enough: its newest state, except
  // that a file made in this session stays "created" while it is written.
  if (kind === "changed" && before?.kind === "created") kind = "created";
  changes.delete(name); // so that it moves to the end
  changes.set(name, { kind, at: Date.now(), order: ++counter });
  const [oldest] = changes.keys();
  if (changes.size > MAX_REMEMBERED) changes.delete(oldest);
  for (const wake of [...waiting]) wake();
}

// The recursive option of fs.watch would also watch node_modules, and differs between platforms.
// So: one plain watch per directory that matters, new directories included.
/** @param {string} directory @param {boolean} isNew */
function watchTree(directory, isNew) {
  if (watchers.has(directory) || watchers.size >= MAX_DIRECTORIES) return;
  try {
    const watcher = watch(directory, (_event, name) => name && onEvent(directory, path.join(directory, path.basename(String(name)))));
    watcher.on("error", () => unwatch(directory));
    watchers.set(directory, watcher);
    // Listed after the watch began: what appears in between is seen twice, never missed.
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const child = path.join(directory, entry.name);
      if (entry.isDirectory()) {
        if (!SKIP.has(entry.name)) watchTree(child, isNew);
      } else if (!known.has(child)) {
        known.add(child);
        if (isNew) record(child, "created");
      }
    }
  } catch {
    unwatch(directory); // unreadable, or gone again
  }
}

/** @param {string} directory */
function unwatch(directory) {
  watchers.get(directory)?.close();
  watchers.delete(directory);
}

// A directory went away. Not every platform reports the files that went with it.
/** @param {string} directory */
function forget(directory) {
  /** @param {string} file */
  const isInside = (file) => file === directory || file.startsWith(directory + path.sep);
  [...watchers.keys()].filter(isInside).forEach(unwatch);
  for (const file of [...known].filter(isInside)) {
    known.delete(file);
    record(file, "deleted");
  }
}

// The kind of event differs between platforms; the file itself says what is true now.
/** @param {string} directory @param {string} file */
function onEvent(directory, file) {
  if (SKIP.has(path.basename(file)) || file === directory) return;
  const info = lstatSync(file, { throwIfNoEntry: false });
  if (info?.isDirectory()) {
    watchTree(file, true);
  } else if (info) {
    record(file, known.has(file) ? "changed" : "created");
    known.add(file);
  } else if (watchers.has(file)) {
    forget(file);
  } else if (known.delete(file)) {
    record(file, "deleted");
  }
}

// Resolves at the next change, at the deadline, or when the call is cancelled.
/** @param {number} ms @param {AbortSignal} [signal] @returns {Promise<void>} */
function nextChange(ms, signal) {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      waiting.delete(done);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    waiting.add(done);
    signal?.addEventListener("abort", done);
    if (signal?.aborted) done();
  });
}

/** @type {import("@github/copilot-sdk").ToolHandler} */
async function recentChanges(args, invocation) {
  const since = Number(args?.since ?? 0);
  const listed = () => [...changes].filter(([, change]) => change.order > since);
  const wait = Math.min(Number(args?.wait_seconds) || 0, MAX_WAIT_S);
  if (wait > 0 && listed().length === 0) {
    await nextChange(wait * 1000, invocation?.signal);
    await sleep(SETTLE_MS);
  }

  const all = listed();
  if (all.length === 0) return `No file changed in ${root} since ${new Date(startedAt).toISOString()}.`;
  const limit = Math.max(1, Number(args?.limit) || 50);
  const lines = all.slice(-limit).map(([name, { kind, at }]) => `${kind} ${name} (${new Date(at).toISOString()})`);
  if (all.length > limit) lines.unshift(`[${all.length - limit} older changes left out]`);
  // The counter lets the next call ask for what is new only, without this tool keeping state per caller.
  return `${lines.join("\n")}\nnext since: ${counter}`;
}

watchTree(root, false);

const session = await joinSession({
  tools: [
    {
      name: "recent_changes",
      description: "Lists files of the workspace that were created, changed or deleted since the session began.",
      parameters: {
        type: "object",
        properties: {
          limit: { type: "integer", description: "Newest changes to list (default 50)" },
          since: { type: "integer", description: 'Only changes after this number ("next since" of an earlier call)' },
          wait_seconds: { type: "number", description: `Wait for a change if there is none yet (at most ${MAX_WAIT_S})` },
        },
      },
      handler: recentChanges,
    },
  ],
});
await session.log(`file-watcher watches ${watchers.size} directories`, { ephemeral: true });

process.on("SIGTERM", () => {
  [...watchers.keys()].forEach(unwatch);
  process.exit(0);
});
