// lint-on-edit: runs the project's own linter on a file as soon as the agent has changed it, and
// shows the agent what it found. Silence means that nothing was found. See linters.mjs for which
// linter a file gets; `lint-on-edit.json` in the workspace adds others.

import { spawn } from "node:child_process";
import { createReadStream, realpathSync, statSync } from "node:fs";
import path from "node:path";
import { joinSession } from "@github/copilot-sdk/extension";
import { lintersFor, readConfig } from "./linters.mjs";

const CONFIG_FILE = "lint-on-edit.json";
const EDITING = new Set(["edit", "create", "write", "str_replace_editor", "multi_edit", "apply_patch"]);
const TIMEOUT_MS = 10_000;
const MAX_LINES = 40;
const MAX_CHARS = 8_000;
const SHIM_EMPTY = 127; // what version managers end with when they have no such program
const MAX_BYTES = 1024 * 1024; // a linter that prints more is ended

const root = realpathSync(process.cwd());
// Read once. An agent that changes the list does not get its commands run in the same session.
const config = readConfig(path.join(root, CONFIG_FILE), root, TIMEOUT_MS);
/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
/** @type {Map<string, Promise<void>>} the end of each file's queue */
const queues = new Map();
const said = new Set();

/** @param {string} text */
const failure = (text, resultType = "failure") => ({ textResultForLlm: text, resultType });

/** @param {string} message */
function sayOnce(message) {
  if (said.has(message)) return;
  said.add(message);
  console.error(`lint-on-edit: ${message}`);
}

/**
 * Runs a linter without a shell.
 * @typedef {"done" | "missing" | "timeout" | "cancelled"} State
 * @param {import("./linters.mjs").Linter} linter
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ state: State, code?: number | null, output: string }>}
 */
function run({ command: [program, ...args], cwd, input, timeoutMs = TIMEOUT_MS }, signal) {
  return new Promise((resolve) => {
    const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: "0" };
    const child = spawn(program, args, { cwd, env, stdio: [input ? "pipe" : "ignore", "pipe", "pipe"], windowsHide: true });
    /** @type {Buffer[]} */
    const chunks = [];
    let size = 0;
    /** @param {State} state @param {number | null} [code] */
    const finish = (state, code) => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
      running.delete(child);
      resolve({ state, code, output: clean(Buffer.concat(chunks).toString("utf8")) });
    };
    // Not waiting for the end of the output: a child of the child may hold it open.
    /** @param {State} state @param {number} [code] */
    const stop = (state, code) => {
      child.kill("SIGKILL");
      finish(state, code);
    };
    const cancel = () => stop("cancelled");
    const timer = setTimeout(() => stop("timeout"), timeoutMs);
    /** @param {Buffer} chunk */
    const collect = (chunk) => {
      if (size > MAX_BYTES) return;
      chunks.push(chunk);
      size += chunk.length;
      if (size > MAX_BYTES) stop("done", 1);
    };
    running.add(child);
    child.stdout?.on("data", collect);
    child.stderr?.on("data", collect);
    child.on("error", (/** @type {NodeJS.ErrnoException} */ error) => (error.code === "ENOENT" || error.code === "EACCES" ? finish("missing") : finish("done", 0)));
    child.on("close", (code, killedBy) => finish(killedBy ? "cancelled" : code === SHIM_EMPTY ? "missing" : "done", code));
    signal?.addEventListener("abort", cancel);
    if (signal?.aborted) cancel();
    const { stdin } = child;
    if (input && stdin) {
      stdin.on("error", () => {}); // it may end without reading all of it
      createReadStream(input).on("error", () => stdin.end()).pipe(stdin);
    }
  });
}

// Without colours, and without node's own stack below a syntax error.
/** @param {string} text */
const clean = (text) => text
  .replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "")
  .replace(/\r\n?/g, "\n")
  .replace(/^ +at .*\bnode:internal\/.*\n?|^Node\.js v[\d.]+$/gm, "")
  .trim();

/** @param {string} output */
function shorten(output) {
  const lines = output.split("\n");
  const text = lines.slice(0, MAX_LINES).join("\n");
  const rest = lines.length > MAX_LINES ? `\n(${lines.length - MAX_LINES} more lines)` : "";
  return text.length > MAX_CHARS ? `${text.slice(0, MAX_CHARS)}\n(cut)` : text + rest;
}

/**
 * `{ name, linter, text }`: text is "" for a clean file; `{ name, skipped }` when nothing could be said.
 * @param {string} file
 * @param {AbortSignal} [signal]
 */
async function lint(file, signal) {
  const name = path.relative(root, file);
  if (!statSync(file, { throwIfNoEntry: false })?.isFile()) return { name, skipped: "there is no such file" };
  const linters = lintersFor(file, root, config.linters);
  for (const linter of linters) {
    const { state, code, output } = await run(linter, signal);
    if (state === "missing") {
      sayOnce(`${linter.command[0]} is not installed; ${linter.name} is skipped`);
      continue;
    }
    if (state === "timeout") {
      sayOnce(`${linter.name} took longer than ${linter.timeoutMs ?? TIMEOUT_MS} ms and was ended`);
      return { name, skipped: `${linter.name} took too long`, timeout: true };
    }
    if (state === "cancelled") return { name, skipped: `${linter.name} was ended` };
    const found = linter.findings ? linter.findings(code, output) : code !== 0;
    return { name, linter: linter.name, text: found ? shorten(output) || `${linter.name} ended with code ${code}` : "" };
  }
  return { name, skipped: linters.length > 0 ? `${linters.map((linter) => linter.name).join(" and ")} cannot be started` : "no linter is known for it" };
}

/**
 * One run per file at a time; each reads the file after the edit that it belongs to.
 * @param {string} file
 * @param {AbortSignal} [signal]
 */
function lintInTurn(file, signal) {
  const result = (queues.get(file) ?? Promise.resolve()).then(() => lint(file, signal));
  const end = result.catch(() => {}).then(() => {
    if (queues.get(file) === end) queues.delete(file);
  });
  queues.set(file, end);
  return result;
}

/**
 * The real path of a file in the workspace, or null: what lies outside is none of our business.
 * @param {string} given
 * @param {string} folder
 */
function inWorkspace(given, folder) {
  try {
    const file = realpathSync(path.resolve(folder, given));
    const relative = path.relative(root, file);
    return relative === "" || relative.startsWith("..") || path.isAbsolute(relative) ? null : file;
  } catch {
    return null; // gone already
  }
}

/**
 * The files that a call changed.
 * @param {import("@github/copilot-sdk").PostToolUseHookInput} call
 * @returns {string[]}
 */
function changedFiles({ toolName, toolArgs, toolResult }) {
  if (!EDITING.has(toolName) || (toolResult?.resultType ?? "success") !== "success") return [];
  let args = toolArgs;
  if (typeof args === "string") {
    try {
      args = JSON.parse(args); // some hosts hand the arguments over as JSON text
    } catch {
      args = { input: args };
    }
  }
  if (toolName === "str_replace_editor" && args?.command === "view") return [];
  const patch = toolName === "apply_patch" ? String(args?.input ?? args?.patch ?? "") : "";
  const patched = [...patch.matchAll(/^\*\*\* (?:(?:Add|Update) File|Move to): (.+?)\s*$/gm)].map(([, file]) => file);
  return [args?.path ?? args?.file_path ?? args?.filePath, ...patched].filter((file) => typeof file === "string" && file !== "");
}

const session = await joinSession({
  hooks: {
    onPostToolUse: async (input) => {
      try {
        const folder = input.workingDirectory ?? input.cwd ?? root;
        const files = [...new Set(changedFiles(input).map((file) => inWorkspace(file, folder)).filter((file) => file !== null))];
        const results = await Promise.all(files.map((file) => lintInTurn(file)));
        const found = results.filter(({ text }) => text);
        if (found.length === 0) return;
        return { additionalContext: found.map(({ name, linter, text }) => `${linter} on ${name} after this edit:\n${text}`).join("\n\n") };
      } catch (/** @type {any} */ error) {
        sayOnce(error.message); // a linter must never get in the way of an edit
      }
    },
  },
  tools: [
    {
      name: "lint_path",
      description: "Runs the project's linter on one file and returns what it finds.",
      parameters: {
        type: "object",
        properties: { path: { type: "string", description: "File, relative to the workspace" } },
        required: ["path"],
      },
      handler: async (args, invocation) => {
        if (typeof args?.path !== "string" || args.path === "") return failure('lint_path needs a "path".');
        const file = inWorkspace(args.path, root);
        if (!file) return failure(`${args.path} is not a file in the workspace.`);
        const { name, linter, text, skipped, timeout } = await lintInTurn(file, invocation?.signal);
        if (skipped) return failure(`${name} was not checked: ${skipped}.`, timeout ? "timeout" : "failure");
        return text ? `${linter} on ${name}:\n${text}` : `${linter} found nothing in ${name}.`;
      },
    },
  ],
});

if (config.problems.length > 0) {
  await session.log(`lint-on-edit: ${CONFIG_FILE}: ${config.problems.join("; ")}`, { level: "warning" });
}
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
