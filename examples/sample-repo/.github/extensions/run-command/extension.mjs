// run-command: a tool that runs a shell command. Shows the four things such a tool needs to be
// safe to leave alone: a deadline, a cap on the output, a working directory, and cancellation.
//
// Try it:  tenon call run_command --args '{"command":"ls -l | head -3"}'

import { spawn } from "node:child_process";
import { stat } from "node:fs/promises";
import path from "node:path";
import { joinSession } from "@github/copilot-sdk/extension";

const DEFAULT_TIMEOUT_S = 30;
const MAX_TIMEOUT_S = 600;
const MAX_OUTPUT_CHARS = 16_000; // what a model can read without losing its thread
const KILL_GRACE_MS = 2_000; // between asking a command to stop and ending it
const DRAIN_GRACE_MS = 1_000; // between the shell's exit and closing its pipes

const isWindows = process.platform === "win32";
const [SHELL, ...SHELL_ARGS] = isWindows ? ["powershell", "-NoProfile", "-Command"] : ["/bin/sh", "-c"];

/** @typedef {import("node:child_process").ChildProcess} ChildProcess */

/** @type {Set<ChildProcess>} */
const running = new Set();

// The command gets a process group of its own, so that what the shell started dies with it.
/** @param {ChildProcess} child @param {NodeJS.Signals} signal */
function killTree(child, signal) {
  try {
    if (isWindows) child.kill(signal);
    else if (child.pid) process.kill(-child.pid, signal);
  } catch {
    // Already gone.
  }
}

// Keeps the beginning and the end: the first lines say what ran, the last ones how it failed.
/** @param {number} limit */
function cappedText(limit) {
  const half = Math.floor(limit / 2);
  let head = "";
  let tail = "";
  let dropped = 0;
  return {
    /** @param {string} text */
    add(text) {
      const room = half - head.length;
      head += text.slice(0, room);
      tail += text.slice(room);
      if (tail.length > half) {
        dropped += tail.length - half;
        tail = tail.slice(-half);
      }
    },
    toString: () => (dropped ? `${head}\n[... ${dropped} characters left out ...]\n${tail}` : head + tail),
  };
}

/**
 * @typedef {{ error?: Error, code?: number | null, killedBy?: NodeJS.Signals | null }} Outcome
 * @param {string} command
 * @param {{ cwd: string, timeoutMs: number, signal?: AbortSignal }} options
 * @returns {Promise<Outcome & { stoppedBecause: string | null, output: string }>}
 */
function run(command, { cwd, timeoutMs, signal }) {
  return new Promise((resolve) => {
    const output = cappedText(MAX_OUTPUT_CHARS);
    /** @type {NodeJS.Timeout[]} */
    const timers = [];
    const child = spawn(SHELL, [...SHELL_ARGS, command], {
      cwd,
      detached: !isWindows,
      windowsHide: true,
      stdio: ["ignore", "pipe", "pipe"], // no stdin: a command that asks a question must not wait
    });
    running.add(child);

    /** @type {string | null} */
    let stoppedBecause = null;
    /** @param {string} why */
    const stop = (why) => {
      if (stoppedBecause) return;
      stoppedBecause = why;
      killTree(child, "SIGTERM");
      timers.push(setTimeout(() => killTree(child, "SIGKILL"), KILL_GRACE_MS));
    };
    const onAbort = () => stop("cancelled");
    /** @param {Outcome} outcome */
    const finish = (outcome) => {
      timers.forEach(clearTimeout);
      signal?.removeEventListener("abort", onAbort);
      running.delete(child);
      resolve({ stoppedBecause, output: String(output), ...outcome });
    };

    timers.push(setTimeout(() => stop("timeout"), timeoutMs));
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted) onAbort();

    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8"); // decodes across chunk borders
      stream.on("data", (text) => output.add(text));
    }
    child.on("error", (error) => finish({ error }));
    child.on("close", (code, killedBy) => finish({ code, killedBy }));
    // A process left in the background keeps the pipes open, and "close" would wait for it.
    child.on("exit", (code, killedBy) => {
      timers.push(
        setTimeout(() => {
          killTree(child, "SIGKILL");
          child.stdout.destroy();
          child.stderr.destroy();
          finish({ code, killedBy });
        }, DRAIN_GRACE_MS),
      );
    });
  });
}

/** @type {import("@github/copilot-sdk").ToolHandler} */
async function runCommand(args, invocation) {
  /** @param {string} text */
  const fail = (text, resultType = "failure") => ({ textResultForLlm: text, resultType });
  const command = typeof args?.command === "string" ? args.command.trim() : "";
  if (!command) return fail('run_command needs a non-empty "command".');

  const cwd = path.resolve(process.cwd(), args.cwd ?? ".");
  const info = await stat(cwd).catch(() => null);
  if (!info?.isDirectory()) return fail(`Not a directory: ${cwd}`);

  const asked = Number(args.timeout_seconds ?? DEFAULT_TIMEOUT_S);
  const seconds = asked > 0 ? Math.min(asked, MAX_TIMEOUT_S) : DEFAULT_TIMEOUT_S;
  const result = await run(command, { cwd, timeoutMs: seconds * 1000, signal: invocation?.signal });

  if (result.error) return fail(`Could not start the command: ${result.error.message}`);
  if (result.stoppedBecause === "timeout") return fail(`timed out after ${seconds} s\n${result.output}`, "timeout");
  if (result.stoppedBecause) return fail(`${result.stoppedBecause}\n${result.output}`);
  const text = `exit code: ${result.code ?? result.killedBy}\n${result.output}`.trimEnd();
  return result.code === 0 ? text : fail(text);
}

await joinSession({
  tools: [
    {
      name: "run_command",
      description: "Runs a shell command in the workspace and returns its exit code and output.",
      parameters: {
        type: "object",
        properties: {
          command: { type: "string", description: "The command line, as typed into a shell" },
          cwd: { type: "string", description: "Directory to run in, relative to the workspace" },
          timeout_seconds: { type: "number", description: `Default ${DEFAULT_TIMEOUT_S}, at most ${MAX_TIMEOUT_S}` },
        },
        required: ["command"],
      },
      handler: runCommand,
    },
  ],
});

// Nothing that was started here may outlive the extension.
process.on("SIGTERM", () => {
  for (const child of running) killTree(child, "SIGKILL");
  process.exit(0);
});
