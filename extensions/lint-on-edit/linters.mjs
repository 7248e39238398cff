// Which linter a file gets. Each entry of the table gives `{ name, command, cwd }`, or null when the
// project does not use that linter; the first one that is used is run. A project's own settings
// decide: a linter that nobody asked for would only complain about style.
//
// `findings` is told the exit code and the output; without it, any exit code but 0 is a finding.

import { existsSync, readFileSync } from "node:fs";
import path from "node:path";

/**
 * @typedef {object} Linter
 * @property {string} name
 * @property {string[]} command
 * @property {string} [cwd] the file's folder, unless it says another
 * @property {string} [input] a file to be given on standard input
 * @property {number} [timeoutMs]
 * @property {(code: number | null | undefined, text: string) => boolean} [findings]
 *
 * @typedef {(file: string, root: string) => Linter | null} Make
 * @typedef {{ matches: (file: string) => boolean, make: (file: string) => Linter }} Configured
 */

const SCRIPTS = [".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"];
const ESLINT_CONFIGS = [
  ...["js", "mjs", "cjs", "ts", "mts", "cts"].map((type) => `eslint.config.${type}`),
  ...["", ".js", ".cjs", ".json", ".yml", ".yaml"].map((type) => `.eslintrc${type}`),
];
// Reads and compiles, and writes no cache file beside the source.
const PYTHON_CHECK = 'import sys; sys.tracebacklimit = 0; compile(open(sys.argv[1], "rb").read(), sys.argv[1], "exec")';
// Node 20 takes a .js file for CommonJS; what it says then about a module or JSX is no finding.
const NOT_PLAIN = /Cannot use import statement|Unexpected token 'export'|Cannot use 'import\.meta'|await is only valid|Unexpected token '<'/;
/** @type {NonNullable<Linter["findings"]>} */
const brokenScript = (code, text) => code !== 0 && !NOT_PLAIN.test(text);

// These print a difference, and may still end with 0.
/** @type {NonNullable<Linter["findings"]>} */
const anyOutput = (code, text) => code !== 0 || text !== "";

/** @type {{ types: string[], make: Make }[]} */
const TABLE = [
  { types: [...SCRIPTS, ".json", ".jsonc", ".css"], make: biome },
  { types: [...SCRIPTS, ".vue", ".svelte"], make: eslint },
  { types: [".js", ".mjs", ".cjs"], make: (file) => ({ name: "node --check", command: ["node", "--check", file], findings: brokenScript }) },
  { types: [".py", ".pyi"], make: ruff },
  { types: [".py"], make: (file) => ({ name: "python", command: ["python3", "-c", PYTHON_CHECK, file] }) },
  { types: [".rs"], make: rustfmt },
  { types: [".go"], make: (file) => ({ name: "gofmt", command: ["gofmt", "-d", "-e", file], findings: anyOutput }) },
  { types: [".sh", ".bash"], make: (file) => ({ name: "shellcheck", command: ["shellcheck", "--format=gcc", file] }) },
  { types: [".php"], make: (file) => ({ name: "php -l", command: ["php", "-l", file] }) },
];

/**
 * The linters for a file, best first. The next one is for when a program is not installed.
 * @param {string} file
 * @param {string} root
 * @param {Configured[]} configured
 * @returns {Linter[]}
 */
export function lintersFor(file, root, configured) {
  const own = configured.find(({ matches }) => matches(file));
  if (own) return [own.make(file)];
  const type = path.extname(file).toLowerCase();
  const found = TABLE.filter(({ types }) => types.includes(type)).map(({ make }) => make(file, root));
  return found.filter((linter) => linter !== null).map((linter) => ({ cwd: path.dirname(file), ...linter }));
}

/**
 * The nearest of some files, from the file's folder up to the workspace.
 * @param {string} file
 * @param {string} root
 * @param {string[]} names
 */
function nearest(file, root, names) {
  for (let folder = path.dirname(file); ; folder = path.dirname(folder)) {
    const name = names.find((each) => existsSync(path.join(folder, each)));
    if (name) return path.join(folder, name);
    if (folder === root || folder === path.dirname(folder)) return null;
  }
}

/** @param {string} file */
function read(file) {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

// Started as node scripts: the entries of node_modules/.bin are no programs on Windows.
/** @type {Make} */
function biome(file, root) {
  const config = nearest(file, root, ["biome.json", "biome.jsonc"]);
  const program = config && nearest(file, root, ["node_modules/@biomejs/biome/bin/biome"]);
  if (!config || !program) return null;
  return { name: "biome", command: ["node", program, "lint", "--colors=off", "--no-errors-on-unmatched", file], cwd: path.dirname(config) };
}

/** @type {Make} */
function eslint(file, root) {
  const config = nearest(file, root, ESLINT_CONFIGS);
  const manifest = config ?? nearest(file, root, ["package.json"]) ?? "";
  if (!config && !/"eslintConfig"\s*:/.test(read(manifest))) return null;
  const program = nearest(file, root, ["node_modules/eslint/bin/eslint.js"]);
  return program === null ? null : { name: "eslint", command: ["node", program, "--no-color", file], cwd: path.dirname(manifest) };
}

/** @type {Make} */
function ruff(file, root) {
  const own = nearest(file, root, ["ruff.toml", ".ruff.toml"]);
  const project = own ?? nearest(file, root, ["pyproject.toml"]);
  if (!own && !/^\[tool\.ruff\b/m.test(read(project ?? ""))) return null;
  const program = nearest(file, root, [".venv/bin/ruff", "venv/bin/ruff", ".venv/Scripts/ruff.exe"]) ?? "ruff";
  return { name: "ruff", command: [program, "check", "--quiet", "--no-fix", file] };
}

// From standard input, so that it stays with this file and leaves its modules alone.
/** @type {Make} */
function rustfmt(file, root) {
  let edition = "2021";
  for (let manifest = nearest(file, root, ["Cargo.toml"]); manifest; ) {
    const found = /^edition\s*=\s*"(\d{4})"/m.exec(read(manifest));
    if (found) edition = found[1];
    const above = path.dirname(manifest);
    manifest = found || above === root || above === path.dirname(above) ? null : nearest(above, root, ["Cargo.toml"]);
  }
  return { name: "rustfmt", command: ["rustfmt", "--check", "--color", "never", "--edition", edition], input: file, findings: anyOutput };
}

// lint-on-edit.json -------------------------------------------------------------------------------

/** @type {Record<string, string>} */
const GLOB_TOKENS = { "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]" };

/**
 * `*.js` is a name in any folder, `src/**` counts from the workspace.
 * @param {string} glob
 */
function globToRegExp(glob) {
  const body = glob.replace(/^\.?\//, "").replace(/\*\*\/|\*\*|\*|\?|[.+^${}()|[\]\\]/g, (token) => GLOB_TOKENS[token] ?? `\\${token}`);
  return new RegExp(glob.includes("/") ? `^${body}$` : `(?:^|/)${body}$`);
}

/**
 * The project's own linters, and what is wrong with the file that lists them.
 * @param {string} file
 * @param {string} root
 * @param {number} defaultTimeout
 */
export function readConfig(file, root, defaultTimeout) {
  /** @type {string[]} */
  const problems = [];
  /** @type {Configured[]} */
  const linters = [];
  if (!existsSync(file)) return { linters, problems };
  let entries = [];
  try {
    entries = JSON.parse(read(file).replace(/^\uFEFF/, "")).linters ?? [];
    if (!Array.isArray(entries)) throw new Error('"linters" is not an array');
  } catch (/** @type {any} */ error) {
    return { linters, problems: [error.message] };
  }
  /** @type {(value: unknown) => value is string[]} */
  const texts = (value) => Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === "string" && each !== "");
  for (const [index, entry] of entries.entries()) {
    const { files, command, timeoutMs = defaultTimeout } = entry ?? {};
    if (!texts(files) || !texts(command) || !(timeoutMs > 0)) {
      problems.push(`linters[${index}] needs "files" and "command" as lists of texts, and a "timeoutMs" above 0 if any`);
      continue;
    }
    const patterns = files.map(globToRegExp);
    linters.push({
      matches: (given) => {
        const relative = path.relative(root, given).replace(/\\/g, "/");
        return patterns.some((pattern) => pattern.test(relative));
      },
      make: (given) => {
        const words = command.map((word) => word.replaceAll("{file}", given));
        return { name: command[0], command: command.some((word) => word.includes("{file}")) ? words : [...words, given], cwd: root, timeoutMs };
      },
    });
  }
  return { linters, problems };
}
