// git-info: branch and last commit of the workspace. Runs git itself, which knows about worktrees,
// packed refs and everything else that reading .git by hand gets wrong.

import { execFile } from "node:child_process";
import { joinSession } from "@github/copilot-sdk/extension";

const TIMEOUT_MS = 10_000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
const FIELDS = ["%h", "%an", "%aI", "%s"]; // short hash, author, date, subject
const SEPARATOR = "%x1f"; // git prints the byte; no subject line contains it

/** @param {string} text */
const failure = (text) => ({ textResultForLlm: text, resultType: "failure" });

// Never rejects: a failing git is an answer here, not an exception.
/**
 * @param {string[]} args
 * @param {AbortSignal} [signal]
 * @returns {Promise<{ error: import("node:child_process").ExecFileException | null, out: string, message: string }>}
 */
function git(args, signal) {
  return new Promise((resolve) => {
    const options = {
      cwd: process.cwd(),
      timeout: TIMEOUT_MS,
      maxBuffer: MAX_OUTPUT_BYTES,
      signal,
      windowsHide: true,
      // English messages, so that they can be told apart; no lock that could trip a git at work.
      env: { ...process.env, LC_ALL: "C", GIT_OPTIONAL_LOCKS: "0" },
    };
    execFile("git", args, options, (error, stdout, stderr) => {
      resolve({ error, out: String(stdout).trim(), message: String(stderr).trim() || (error?.message ?? "") });
    });
  });
}

/** @type {import("@github/copilot-sdk").ToolHandler} */
async function gitInfo(_args, invocation) {
  const signal = invocation?.signal;
  const top = await git(["rev-parse", "--show-toplevel"], signal);
  if (signal?.aborted) return failure("git_info was cancelled.");
  if (top.error) {
    if (top.error.code === "ENOENT") return failure("git is not installed, or not on the PATH.");
    // A plain answer and not a failure: the question was answered.
    if (/not a git repository/.test(top.message)) return `${process.cwd()} is not a git repository.`;
    return failure(`git failed: ${top.message}`);
  }

  // Empty on a detached HEAD; unlike rev-parse it also knows a branch without commits.
  const branch = await git(["symbolic-ref", "--quiet", "--short", "HEAD"], signal);
  const log = await git(["log", "-1", `--format=${FIELDS.join(SEPARATOR)}`], signal);
  const status = await git(["status", "--porcelain"], signal);
  if (signal?.aborted) return failure("git_info was cancelled.");

  const lines = [`root: ${top.out}`, `branch: ${branch.out || "(detached HEAD)"}`];
  if (log.error) {
    lines.push("commit: (none yet)");
  } else {
    const [hash, author, date, subject] = log.out.split("\x1f");
    lines.push(`commit: ${hash} ${subject}`, `author: ${author}`, `date: ${date}`);
  }
  if (!status.error) {
    const changed = status.out === "" ? 0 : status.out.split("\n").length;
    lines.push(`changes: ${changed === 0 ? "none" : `${changed} uncommitted`}`);
  }
  return lines.join("\n");
}

await joinSession({
  tools: [
    {
      name: "git_info",
      description: "Returns the git branch, the last commit and whether there are uncommitted changes in the workspace.",
      parameters: { type: "object", properties: {} },
      handler: gitInfo,
    },
  ],
});
