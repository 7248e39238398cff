// guard-rails: looks at every tool call before it runs, and stops or questions what is hard to undo:
// destructive shell commands, and writing to files that hold secrets or the repository itself.
//
// A seat belt and no sandbox: it reads commands as a shell would (see shell.mjs), but a program can
// still do anything once it runs. It never allows: that question stays with the person.

import { readFileSync, existsSync, statSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { joinSession } from "@github/copilot-sdk/extension";
import { PROTECTED, RULES, globToRegExp, judgePath, judgeScript, realPath } from "./rules.mjs";

const POLICY_FILE = "guard-rails.json";
const MAX_COMMAND = 100_000;
const MAX_REASONS = 3;
const WRITING = new Set(["edit", "create", "write", "str_replace_editor", "multi_edit", "multiedit", "notebook_edit", "apply_patch", "delete"]);
const READING = new Set(["view", "read", "read_file", "grep", "rg", "open"]);
const SHELL_INPUT = new Set(["write_bash", "write_powershell"]); // keys for a shell that is already running
const PATH_KEYS = ["path", "file_path", "filePath", "filename", "notebook_path", "paths"];

/**
 * @typedef {import("./rules.mjs").Finding} Finding
 * @typedef {{ protectedPaths: string[], denyCommands: RegExp[], allowCommands: RegExp[] }} Policy
 * @typedef {import("./rules.mjs").Context & { policy: Policy }} Context
 */

/** @type {import("@github/copilot-sdk").CopilotSession | undefined} */
let session;

/** @param {string} message */
const warn = (message) => {
  if (!session) return console.error(message);
  session.log(message, { level: "warning" }).catch((error) => console.error(`${message} (${error.message})`));
};

// The policy -------------------------------------------------------------------------------------

/** @type {Map<string, { stamp: string, policy: Policy }>} by workspace root */
const policies = new Map();

/**
 * The project's own rules. They can only add to the built-in ones, so a bad file loses nothing.
 * @param {string} root
 */
function readPolicy(root) {
  const file = path.join(root, POLICY_FILE);
  const { mtimeMs, size } = statSync(file, { throwIfNoEntry: false }) ?? {};
  const stamp = `${mtimeMs}:${size}`;
  const known = policies.get(root);
  if (known?.stamp === stamp) return known.policy;

  /** @type {Policy} */
  const policy = { protectedPaths: [], denyCommands: [], allowCommands: [] };
  const problems = [];
  if (mtimeMs !== undefined) {
    let json = {};
    try {
      json = JSON.parse(readFileSync(file, "utf8").replace(/^\uFEFF/, ""));
      if (json === null || typeof json !== "object" || Array.isArray(json)) throw new Error("it is not an object");
    } catch (/** @type {any} */ error) {
      json = {};
      problems.push(`it cannot be read (${error.message})`);
    }
    for (const [key, value] of Object.entries(json)) {
      if (!Object.hasOwn(policy, key)) {
        problems.push(`"${key}" is not known`);
      } else if (!Array.isArray(value)) {
        problems.push(`"${key}" is not an array`);
      } else {
        for (const entry of value) {
          try {
            if (typeof entry !== "string" || entry === "") throw new Error("it is not a text");
            if (key === "protectedPaths") {
              globToRegExp(entry, { root, home: os.homedir() }); // throws what is wrong with it
              policy.protectedPaths.push(entry);
            } else {
              policy[/** @type {"denyCommands" | "allowCommands"} */ (key)].push(new RegExp(entry));
            }
          } catch (/** @type {any} */ error) {
            problems.push(`${JSON.stringify(entry)} in "${key}" is left out (${error.message})`);
          }
        }
      }
    }
  }
  policies.set(root, { stamp, policy }); // before the warning: it is given once per version of the file
  if (problems.length > 0) warn(`guard-rails: ${POLICY_FILE}: ${problems.join("; ")}. The built-in rules hold.`);
  return policy;
}

/**
 * The repository's root, or the folder itself.
 * @param {string} folder
 */
function workspaceRoot(folder) {
  for (let current = folder; ; current = path.dirname(current)) {
    if (existsSync(path.join(current, ".git"))) return current;
    if (current === path.dirname(current)) return folder;
  }
}

/** @param {string} folder @returns {Context} */
function contextFor(folder) {
  const cwd = path.resolve(folder);
  const home = path.resolve(os.homedir());
  const root = workspaceRoot(cwd);
  const policy = readPolicy(root);
  /** @type {import("./rules.mjs").Protection[]} */
  const project = policy.protectedPaths.map((glob) => ({ glob, write: "deny", advice: `The project protects it in ${POLICY_FILE}` }));
  const protectedPaths = [...PROTECTED, ...project].map((rule) => ({ ...rule, pattern: globToRegExp(rule.glob, { root, home }) }));
  return { cwd, home, root, realRoot: realPath(root), policy, protectedPaths, commands: [] };
}

// The decision -----------------------------------------------------------------------------------

/**
 * Arguments come as an object, as JSON text, or as the bare text of a command or patch.
 * @param {any} toolArgs
 */
function readArguments(toolArgs) {
  if (typeof toolArgs !== "string") return toolArgs ?? {};
  try {
    const parsed = JSON.parse(toolArgs);
    return parsed !== null && typeof parsed === "object" ? parsed : { text: toolArgs };
  } catch {
    return { text: toolArgs };
  }
}

/** @param {string} command @param {Context} context @param {boolean} powershell */
function judgeCommand(command, context, powershell) {
  if (command.length > MAX_COMMAND) throw new Error(`it has more than ${MAX_COMMAND} characters`);
  const { denyCommands, allowCommands } = context.policy;
  const findings = judgeScript(command, context, { powershell })
    .filter(({ decision, text }) => !(decision === "ask" && text !== undefined && allowCommands.some((pattern) => pattern.test(text))));
  for (const pattern of denyCommands) {
    if ([command, ...context.commands].some((text) => pattern.test(text))) findings.unshift({ decision: "deny", reason: `The project forbids commands that match ${pattern} in ${POLICY_FILE}.` });
  }
  return findings;
}

/** @param {string} toolName @param {unknown} toolArgs @param {string} folder */
function judgeCall(toolName, toolArgs, folder) {
  const args = readArguments(toolArgs);
  const context = contextFor(folder);
  const name = String(toolName).toLowerCase();
  /** @type {Finding[]} */
  const findings = [];

  const isShell = /^(bash|powershell|shell|local_shell|run_in_terminal|run_command)$/.test(name);
  const command = args.command ?? (SHELL_INPUT.has(name) ? args.input : undefined) ?? (isShell ? args.text : undefined);
  // Some hosts give the words of a command. The last word of ["bash", "-lc", "..."] is the script.
  const script = Array.isArray(command) ? command.map((word) => `'${String(word).replace(/'/g, "'\\''")}'`).join(" ") : command;
  if (typeof script === "string") findings.push(...judgeCommand(script, context, name.includes("powershell")));

  const onlyReads = READING.has(name) || (name === "str_replace_editor" && args.command === "view");
  if (onlyReads || WRITING.has(name)) {
    const files = PATH_KEYS.flatMap((key) => args[key] ?? []).filter((file) => typeof file === "string");
    const patch = name === "apply_patch" ? [args.text, args.input, args.patch].find((text) => typeof text === "string") ?? "" : "";
    for (const [, file] of patch.matchAll(/^\*\*\* (?:(?:Add|Update|Delete) File|Move to): (.+?)\s*$/gm)) files.push(file);
    for (const file of files) {
      const full = path.resolve(context.cwd, file.replace(/^~(?=$|[/\\])/, context.home));
      findings.push(...judgePath(full, onlyReads ? "read" : "write", context));
    }
  }
  return findings;
}

/** @type {import("@github/copilot-sdk").PreToolUseHandler} */
const onPreToolUse = async (input) => {
  /** @type {Finding[]} */
  let findings;
  try {
    findings = judgeCall(input.toolName, input.toolArgs, input.workingDirectory ?? input.cwd ?? process.cwd());
  } catch (/** @type {any} */ error) {
    findings = [{ decision: "ask", reason: `This call could not be checked: ${error.message}.` }];
  }
  if (findings.length === 0) return;
  const decision = findings.some((finding) => finding.decision === "deny") ? "deny" : "ask";
  const reasons = [...new Set(findings.filter((finding) => finding.decision === decision).map(({ reason }) => reason))];
  return { permissionDecision: decision, permissionDecisionReason: `guard-rails: ${reasons.slice(0, MAX_REASONS).join(" ")}` };
};
onPreToolUse.failClosed = true; // a guard that cannot answer must not let the call through

function describeRules() {
  const { root, policy } = contextFor(process.cwd());
  const lines = [`guard-rails for ${root}`, ...RULES.map((rule) => `  ${rule}`)];
  for (const { glob, write, read } of PROTECTED) lines.push(`  ${write} writing${read ? `, ${read} before reading` : ""}: ${glob}`);
  lines.push(`From ${POLICY_FILE}:`);
  for (const glob of policy.protectedPaths) lines.push(`  deny writing: ${glob}`);
  for (const pattern of policy.denyCommands) lines.push(`  deny: commands that match ${pattern}`);
  for (const pattern of policy.allowCommands) lines.push(`  do not ask: commands that match ${pattern}`);
  if (Object.values(policy).every((list) => list.length === 0)) lines.push("  nothing");
  return lines.join("\n");
}

session = await joinSession({
  hooks: { onPreToolUse },
  commands: [
    {
      name: "guard-rails",
      description: "Lists the rules that tool calls are checked against",
      handler: () => session?.log(describeRules()),
    },
  ],
});
