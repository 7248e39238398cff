// lint-after-edit: checks the syntax of a .js, .mjs, .cjs or .json file as soon as the agent has
// written it, and tells the agent what is broken while it still knows what it did. The same check
// is there as a tool. No process is started: a check after every edit has to cost next to nothing.
//
// Try it:  tenon call lint_file --args '{"path":".github/extensions/guard/extension.mjs"}'

import { readFile } from "node:fs/promises";
import path from "node:path";
import { joinSession } from "@github/copilot-sdk/extension";

const EDITING_TOOLS = new Set(["edit", "create"]);
const CHECKED = new Set([".js", ".mjs", ".cjs", ".json"]);
const ALLOWS_COMMENTS = /(^|[\\/])([tj]sconfig[^\\/]*\.json|\.vscode[\\/][^\\/]+\.json)$/; // JSON with comments
const MAX_CHARS = 1_000_000;
const MAX_STEPS = 200;

/** @type {FunctionConstructor} */
const AsyncFunction = /** @type {any} */ (async () => {}).constructor;

// The engine's own parser does the work: a function built from the text is parsed and never called.
// A function body may not contain import and export, so these are blanked out first, at the same
// length, where they start a line or follow a ";". Statements that do not look right are left in,
// and fail.
const NAMES = String.raw`(?:[\w$]+|\*\s*as\s+[\w$]+|\{[^}'"]*\})`;
const FROM = String.raw`(["'])[^"'\n]*\2(?:\s*with\s*\{[^}]*\})?`;
const IMPORT = new RegExp(String.raw`(^|;)[ \t]*import\b\s*(?:${NAMES}(?:\s*,\s*${NAMES})?\s*from\s*)?${FROM}`, "gm");
const REEXPORT = new RegExp(String.raw`(^|;)[ \t]*export\b\s*(?:\*(?:\s*as\s+[\w$]+)?\s*from\s*${FROM})`, "gm");
const EXPORT_LIST = new RegExp(String.raw`(^|;)[ \t]*export\b\s*\{[^}]*\}(?:\s*from\s*${FROM})?`, "gm");

/** @param {string} source */
function moduleAsFunctionBody(source) {
  /** @param {string} text */
  const blank = (text) => text.replace(/[^\n;]/g, " ");
  return source
    .replace(IMPORT, blank)
    .replace(REEXPORT, blank)
    .replace(EXPORT_LIST, blank)
    .replace(/^([ \t]*)export[ \t]+default\b/gm, "$1exportDefault=")
    .replace(/^([ \t]*)export(?=\s+(?:const|let|var|function|class|async)\b)/gm, "$1      ")
    .replace(/\bimport\.meta\b/g, "importMeta_");
}

/** @param {string} body @param {boolean} isModule @returns {string | null} */
function syntaxError(body, isModule) {
  try {
    if (isModule) new AsyncFunction(`"use strict";${body}`);
    else new Function(body);
    return null;
  } catch (/** @type {any} */ error) {
    return error.message;
  }
}

// Engines do not say where such an error is. A parser reads from the top, so every prefix that
// reaches the error fails in the same way: the shortest such prefix ends at the error's line.
// Line by line in a short file, in larger steps in a long one; a good hint, not a proof.
/** @param {string} body @param {boolean} isModule @param {string} message */
function locate(body, isModule, message) {
  const lines = body.split("\n");
  /** @param {number} count */
  const failsAlike = (count) => count > 0 && syntaxError(lines.slice(0, count).join("\n"), isModule) === message;
  let end = lines.length;
  for (const step of [Math.ceil(lines.length / MAX_STEPS), 1]) {
    while (failsAlike(end - step)) end -= step;
  }
  return end;
}

// The engine talks about the function that was built; the agent wants to hear about its file.
/** @param {string} body @param {boolean} isModule @param {string} message */
function explain(body, isModule, message) {
  const closers = ["}", ")", "]", "})", "}}", "*/", "`"];
  if (closers.some((closer) => !syntaxError(`${body}\n${closer}`, isModule))) return "something opened here is never closed";
  if (isModule && /\b(import|export)\b/.test(message)) return "malformed import or export statement";
  return message;
}

/** @param {string} file @param {string} source */
function checkText(file, source) {
  const extension = path.extname(file);
  if (extension === ".json") {
    if (ALLOWS_COMMENTS.test(file)) return null;
    try {
      JSON.parse(source);
      return null;
    } catch (/** @type {any} */ error) {
      return `invalid JSON: ${error.message}`;
    }
  }
  const text = source.replace(/^\uFEFF?#!/, "//"); // a "#!" line is no JavaScript
  const looksLikeModule = /^[ \t]*(?:import\s*[\w{*"']|export\s)/m.test(text);
  const isModule = extension === ".mjs" || (extension === ".js" && looksLikeModule);
  const body = isModule ? moduleAsFunctionBody(text) : text;
  const message = syntaxError(body, isModule);
  return message && `syntax error near line ${locate(body, isModule, message)}: ${explain(body, isModule, message)}`;
}

// Returns { name, problem }, with problem null for a good file, or { name, skipped } with a reason.
/** @param {string} file @param {string} directory */
async function check(file, directory) {
  const absolute = path.resolve(directory, file);
  const name = path.relative(directory, absolute) || absolute;
  if (!CHECKED.has(path.extname(absolute))) return { name, skipped: `only ${[...CHECKED].join(", ")} files are checked` };
  const source = await readFile(absolute, "utf8");
  if (source.length > MAX_CHARS) return { name, skipped: "the file is too large to check" };
  return { name, problem: checkText(absolute, source) };
}

await joinSession({
  hooks: {
    onPostToolUse: async (input) => {
      if (!EDITING_TOOLS.has(input.toolName)) return;
      try {
        // Some hosts hand the arguments over as JSON text.
        const args = typeof input.toolArgs === "string" ? JSON.parse(input.toolArgs) : input.toolArgs;
        if (typeof args?.path !== "string") return;
        const { name, problem } = await check(args.path, input.workingDirectory ?? input.cwd ?? process.cwd());
        // Silence means good: a line after every edit would only fill the model's context.
        if (problem) return { additionalContext: `lint-after-edit: ${name}: ${problem}. Fix it before you go on.` };
      } catch {
        // A linter must never get in the way of the edit: the file may already be gone again.
      }
    },
  },
  tools: [
    {
      name: "lint_file",
      description: "Checks the syntax of a .js, .mjs, .cjs or .json file without running it.",
      parameters: {
        type: "object",
        properties: { path: { type: "string", description: "File to check, relative to the workspace" } },
        required: ["path"],
      },
      handler: async (args) => {
        /** @param {string} text */
        const fail = (text) => ({ textResultForLlm: text, resultType: "failure" });
        if (typeof args?.path !== "string" || !args.path) return fail('lint_file needs a "path".');
        try {
          const { name, problem, skipped } = await check(args.path, process.cwd());
          if (skipped) return `${name}: not checked, ${skipped}`;
          // A broken file is a successful check: the tool did what it was asked to do.
          return `${name}: ${problem ?? "no syntax errors"}`;
        } catch (/** @type {any} */ error) {
          return fail(`Cannot read ${args.path}: ${error.message}`);
        }
      },
    },
  ],
});
