// Reads a shell script far enough to know which programs it would start, with which arguments and
// redirections. No interpreter: what only a run could tell becomes UNKNOWN, and the rules decide
// what that means. Quoting, substitutions, subshells, here-documents, `cd`, plain variables, loops
// over fixed lists and brace expansion are understood, because each of them can hide a command.
//
// Words are strings in which quoted special characters are moved to a private range, so that a
// quoted "*" and a bare * stay apart; `plain` moves them back.

import path from "node:path";

/**
 * @typedef {object} Command
 * @property {string[]} words
 * @property {{ write: boolean, target: string }[]} redirects
 * @property {string | undefined} input what it is given on standard input, as far as the script says it
 * @property {string | null} cwd null when it cannot be known
 * @property {boolean} download whether it, or something in it, reads from the network
 *
 * @typedef {object} State
 * @property {string | null} cwd
 * @property {string | null} oldCwd
 * @property {string} home
 * @property {boolean} powershell
 * @property {Set<string>} functions
 * @property {Command[][]} out
 * @property {Record<string, string | string[] | null | undefined>} vars a list is what a loop goes through
 */

export const UNKNOWN = "\uE100"; // what an expansion gives that cannot be known beforehand
export const DOWNLOAD = "\uE101"; // the same, and it comes from the network
const FIELD = "\uE102"; // where an unquoted variable's value falls apart into several words
const MASKED = /[*?[\]{},~!]/;
const MAX_DEPTH = 12;
const MAX_BRACES = 8;

const DOWNLOADERS = new Set(["curl", "wget", "fetch", "aria2c", "iwr", "irm", "invoke-webrequest", "invoke-restmethod"]);
/** @type {Record<string, string>} */
const ESCAPES = { n: "\n", t: "\t", r: "\r" };
const RESERVED = new Set(["if", "then", "else", "elif", "fi", "do", "done", "while", "until", "!", "{", "}", "time", "coproc", "esac"]);

/** @param {string} text */
const mask = (text) => text.replace(new RegExp(MASKED, "g"), (char) => String.fromCharCode(0xe000 + char.charCodeAt(0)));
/** @param {string} raw */
const unmask = (raw) => raw.replace(/[\uE000-\uE07F]/g, (char) => String.fromCharCode(char.charCodeAt(0) - 0xe000));

/** @param {string} raw */
export const isUnknown = (raw) => raw.includes(UNKNOWN) || raw.includes(DOWNLOAD);
/**
 * The word as text. `${_}` is unknown again when the text is read as a script.
 * @param {string} raw
 */
export const plain = (raw) => unmask(raw).replace(/[\uE100\uE101]/g, "${_}");
/** @param {string | undefined} raw */
export const programOf = (raw) => plain(raw ?? "").replace(/^[^]*[\\/]/, "").replace(/\.exe$/i, "");
/** @param {string} raw */
export const isDownloader = (raw) => DOWNLOADERS.has(programOf(raw).toLowerCase());

/**
 * Absolute path of a word, or null when it cannot be known. Globs stay in it.
 * @param {string} raw
 * @param {string | null} cwd
 * @param {string} home
 */
export function resolveWord(raw, cwd, home) {
  if (isUnknown(raw)) return null;
  const text = unmask(raw);
  if (/^~[^/\\]/.test(raw)) return path.resolve(path.dirname(home), text.slice(1)); // somebody's home
  if (/^~/.test(raw)) return path.resolve(home, `.${text.slice(1)}`);
  if (path.isAbsolute(text) || /^[A-Za-z]:[\\/]?/.test(text)) return /^[A-Za-z]:/.test(text) ? text : path.resolve(text);
  return cwd === null ? null : path.resolve(cwd, text);
}

/**
 * Returns the pipelines of a script in the order in which they would run, those in substitutions
 * first. A pipeline is a list of commands.
 * @param {string} source
 * @param {{ cwd: string | null, home: string, powershell?: boolean, depth?: number, functions?: Set<string> }} options
 */
export function parse(source, { cwd, home, powershell = false, depth = 0, functions = new Set() }) {
  /** @type {State} */
  const state = { cwd, oldCwd: cwd, home, powershell, functions, out: [], vars: { HOME: home, PWD: cwd, "env:HOME": home, "env:USERPROFILE": home } };
  new Parser(source.replace(/[\uE000-\uE1FF]/g, "?"), state, depth).list(null);
  return state.out;
}

class Parser {
  pos = 0;
  /** @type {{ command: Command, delimiter: string, tabs: boolean, quoted: boolean }[]} whose text comes with the next line */
  heredocs = [];

  /** @param {string} source @param {State} state @param {number} depth */
  constructor(source, state, depth) {
    if (depth > MAX_DEPTH) throw new Error("it is nested too deeply");
    this.source = source;
    this.state = state;
    this.depth = depth;
  }

  /** @returns {Command} */
  newCommand() {
    return { words: [], redirects: [], input: undefined, cwd: this.state.cwd, download: false };
  }

  /**
   * The body follows as commands of its own: they are judged as if they ran here.
   * @param {string} name
   */
  newFunction(name) {
    this.state.functions.add(programOf(name));
    return this.newCommand();
  }

  /**
   * Reads commands until `closer`, or to the end.
   * @param {string | null} closer
   */
  list(closer) {
    const { source, state } = this;
    /** @type {Command[]} */
    let pipeline = [];
    let command = this.newCommand();
    const endCommand = () => {
      this.finish(command, pipeline);
      command = this.newCommand();
    };
    const endPipeline = () => {
      endCommand();
      if (pipeline.length > 0) state.out.push(pipeline);
      pipeline = [];
    };
    while (this.pos < source.length) {
      const char = source[this.pos];
      const next = source[this.pos + 1];
      if (char === closer) {
        this.pos += 1;
        break;
      } else if (char === " " || char === "\t" || char === "\r") {
        this.pos += 1;
      } else if (!state.powershell && char === "\\" && next === "\n") {
        this.pos += 2;
      } else if (char === "\n") {
        this.pos += 1;
        this.readHeredocs();
        endPipeline();
      } else if (char === "#") {
        while (this.pos < source.length && source[this.pos] !== "\n") this.pos += 1;
      } else if (char === ")" || char === ";" || (char === "&" && next !== ">")) {
        this.pos += 1;
        endPipeline();
      } else if (state.powershell && (char === "{" || char === "}")) {
        this.pos += 1;
        endPipeline();
      } else if (char === "|") {
        this.pos += next === "|" || next === "&" ? 2 : 1;
        if (next === "|") endPipeline();
        else endCommand();
      } else if (char === "(") {
        this.pos += 1;
        if (source.startsWith("(", this.pos) && command.words.length === 0) {
          this.arithmetic();
        } else if (/^\s*\)/.test(source.slice(this.pos)) && command.words.length === 1) {
          this.pos = source.indexOf(")", this.pos) + 1;
          command = this.newFunction(command.words[0]);
        } else {
          // A subshell is one command of this pipeline, and keeps its folder to itself.
          command.words.push(this.inner(")"));
        }
      } else if (char === "<" || char === ">" || char === "&") {
        if (next === "(" && char !== "&") command.words.push(...this.word());
        else this.redirect(command);
      } else {
        const words = this.word();
        if (words.length === 1 && /^\d+$/.test(words[0]) && /[<>]/.test(source[this.pos] ?? "")) continue; // 2>
        for (const word of words) {
          if (word === "{" && command.words[0] === "function") command = this.newFunction(command.words[1]);
          else if (command.words.length > 0 || !RESERVED.has(word)) command.words.push(word);
        }
      }
    }
    endPipeline();
  }

  /**
   * Reads a nested list of commands; they run in their own folder. Gives what it stands for.
   * @param {string | null} closer
   * @param {string} [source] of the list, if it is not what comes next
   */
  inner(closer, source) {
    const { state } = this;
    const before = state.out.length;
    const { cwd, oldCwd, vars } = state;
    state.vars = { ...vars };
    if (source === undefined) {
      if ((this.depth += 1) > MAX_DEPTH) throw new Error("it is nested too deeply");
      this.list(closer);
      this.depth -= 1;
    } else {
      new Parser(source, state, this.depth + 1).list(null);
    }
    Object.assign(state, { cwd, oldCwd, vars });
    const downloads = state.out.slice(before).some((pipeline) => pipeline.some((each) => each.download));
    return downloads ? DOWNLOAD : UNKNOWN;
  }

  /** @param {Command} command @param {Command[]} pipeline */
  finish(command, pipeline) {
    const { state } = this;
    const { words } = command;
    const first = words.findIndex((word) => !/^[A-Za-z_]\w*\+?=/.test(word));
    const assignments = words.splice(0, first === -1 ? words.length : first);
    const name = programOf(words[0]);
    const declares = ["export", "declare", "local", "readonly", "typeset"].includes(name);
    if (words.length === 0 || declares) {
      for (const word of [...assignments, ...words.slice(1)]) {
        const [, key, value] = /^([A-Za-z_]\w*)=([^]*)$/.exec(word) ?? [];
        if (key) state.vars[key] = isUnknown(value) ? undefined : unmask(value.replace(/^~(?=$|\/)/, state.home));
      }
    }
    if (words.length === 0 && command.redirects.length === 0) return;
    if (name === "for" && words[2] === "in") state.vars[plain(words[1])] = words.slice(3);
    command.cwd = state.cwd;
    command.download = words.includes(DOWNLOAD) || words.some(isDownloader);
    pipeline.push(command);
    if (["cd", "pushd", "chdir", "set-location", "sl"].includes(name.toLowerCase())) {
      const target = words.slice(1).find((word) => !/^-./.test(word)) ?? "~";
      const to = target === "-" ? state.oldCwd : resolveWord(target, state.cwd, state.home);
      Object.assign(state, { oldCwd: state.cwd, cwd: to });
    } else if (name === "popd") {
      state.cwd = state.oldCwd;
    }
  }

  /** @param {Command} command */
  redirect(command) {
    const [op] = /^(?:&>>|&>|<<<|<<-|<<|<>|<&|<|>>|>\||>&|>)/.exec(this.source.slice(this.pos, this.pos + 3)) ?? ["&"];
    this.pos += op.length;
    while (/[ \t]/.test(this.source[this.pos] ?? "")) this.pos += 1;
    const start = this.pos;
    const [target = ""] = this.word();
    if (op === "<<<") {
      command.input = plain(target);
    } else if (op === "<<" || op === "<<-") {
      const quoted = /['"\\]/.test(this.source.slice(start, this.pos));
      this.heredocs.push({ command, delimiter: plain(target), tabs: op === "<<-", quoted });
    } else if (!(op.endsWith("&") && /^(\d+|-)$/.test(target))) {
      command.redirects.push({ write: op !== "<" && op !== "<&", target });
    }
  }

  readHeredocs() {
    for (const { command, delimiter, tabs, quoted } of this.heredocs.splice(0)) {
      const lines = [];
      while (this.pos < this.source.length) {
        const end = this.source.indexOf("\n", this.pos);
        let line = this.source.slice(this.pos, end === -1 ? undefined : end);
        this.pos = end === -1 ? this.source.length : end + 1;
        if (tabs) line = line.replace(/^\t+/, "");
        if (line === delimiter) break;
        lines.push(line);
      }
      command.input = lines.join("\n");
      if (!quoted) new Parser(command.input, this.state, this.depth + 1).quoted(null); // it may contain $( )
    }
  }

  /** Skips `(( ... ))` after its first parenthesis; only substitutions in it can run something. */
  arithmetic() {
    const start = this.pos;
    let open = 1;
    while (this.pos < this.source.length && open > 0) {
      if (this.source[this.pos] === "(") open += 1;
      if (this.source[this.pos] === ")") open -= 1;
      this.pos += 1;
    }
    new Parser(this.source.slice(start, this.pos), this.state, this.depth + 1).quoted(null);
    return UNKNOWN;
  }

  /** Reads one word as written; expansions can make none or several of it. */
  word() {
    const { source, state } = this;
    let raw = "";
    let quoted = false;
    while (this.pos < source.length) {
      const char = source[this.pos];
      const next = source[this.pos + 1];
      if ((char === "<" || char === ">") && next === "(" && raw === "") {
        this.pos += 2;
        raw += this.inner(")");
      } else if (/[\s;&|()<>]/.test(char) || (state.powershell && /[{}]/.test(char))) {
        break;
      } else if (char === "'" || (char === "$" && next === "'" && !state.powershell)) {
        quoted = true;
        raw += char === "'" ? this.singleQuoted() : this.ansiQuoted();
      } else if (char === '"' || (char === "$" && next === '"')) {
        quoted = true;
        this.pos += char === '"' ? 1 : 2;
        raw += this.quoted('"');
      } else if (char === (state.powershell ? "`" : "\\")) {
        this.pos += 2;
        if (next !== "\n" && next !== undefined) raw += mask(next);
      } else if (char === "$" || char === "`") {
        raw += this.expansion(false);
      } else {
        raw += char;
        this.pos += 1;
      }
    }
    if (raw === "" && !quoted) {
      if (this.pos < source.length && !/[\s;&|()<>{}]/.test(source[this.pos])) this.pos += 1;
      return [];
    }
    return braces(raw).flatMap((each) => (each.includes(FIELD) ? each.split(FIELD).filter(Boolean) : [each]));
  }

  singleQuoted() {
    let end = this.source.indexOf("'", this.pos + 1);
    if (end === -1) end = this.source.length;
    const text = this.source.slice(this.pos + 1, end);
    this.pos = end + 1;
    return mask(text);
  }

  ansiQuoted() {
    this.pos += 2;
    let text = "";
    while (this.pos < this.source.length && this.source[this.pos] !== "'") {
      const escape = /^\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|([0-7]{1,3})|([^]))/.exec(this.source.slice(this.pos, this.pos + 6));
      if (escape) {
        const [all, hex, unicode, octal, char] = escape;
        const code = hex ?? unicode ? parseInt(hex ?? unicode, 16) : octal ? parseInt(octal, 8) : null;
        text += code === null ? (ESCAPES[char] ?? char) : String.fromCharCode(code);
        this.pos += all.length;
      } else {
        text += this.source[this.pos];
        this.pos += 1;
      }
    }
    this.pos += 1;
    return mask(text);
  }

  /**
   * Reads text in which only expansions and escapes mean something, until `closer` or the end.
   * @param {string | null} closer
   */
  quoted(closer) {
    const { source } = this;
    const escape = this.state.powershell ? "`" : "\\";
    let raw = "";
    while (this.pos < source.length && source[this.pos] !== closer) {
      const char = source[this.pos];
      const next = source[this.pos + 1] ?? "";
      if (char === escape) {
        const escapes = this.state.powershell || /["\\$`\n]/.test(next);
        if (!escapes) raw += char;
        if (next !== "\n") raw += mask(next);
        this.pos += 2;
      } else if (char === "$" || (char === "`" && !this.state.powershell)) {
        raw += this.expansion(true);
      } else {
        raw += mask(char);
        this.pos += 1;
      }
    }
    this.pos += 1;
    return raw;
  }

  /** @param {boolean} inQuotes */
  expansion(inQuotes) {
    const { source } = this;
    if (source[this.pos] === "`") {
      let end = this.pos + 1;
      while (end < source.length && source[end] !== "`") end += source[end] === "\\" ? 2 : 1;
      const script = source.slice(this.pos + 1, end).replace(/\\([`$\\])/g, "$1");
      this.pos = end + 1;
      return this.inner(null, script);
    }
    const rest = source.slice(this.pos + 1, this.pos + 200);
    if (rest.startsWith("((")) {
      this.pos += 2;
      return this.arithmetic();
    }
    if (rest.startsWith("(")) {
      this.pos += 2;
      return this.inner(")");
    }
    if (rest.startsWith("{")) return this.parameter(inQuotes);
    const [name] = (this.state.powershell ? /^(?:env:)?[A-Za-z_]\w*/i : /^[A-Za-z_]\w*|^[0-9@*#?$!_-]/).exec(rest) ?? [];
    this.pos += 1 + (name?.length ?? 0);
    return name === undefined ? "$" : this.value(name, inQuotes);
  }

  /**
   * `${NAME}`, with its operators as far as they tell a value.
   * @param {boolean} inQuotes
   */
  parameter(inQuotes) {
    const start = this.pos + 2;
    let open = 1;
    for (this.pos = start; this.pos < this.source.length && open > 0; this.pos += 1) {
      if (this.source[this.pos] === "{") open += 1;
      if (this.source[this.pos] === "}") open -= 1;
    }
    const body = this.source.slice(start, this.pos - 1);
    const [, name, operator, operand] = /^([A-Za-z_]\w*|env:\w+)(:?[-=?]|)([^]*)$/i.exec(body) ?? [];
    const operandValue = new Parser(operand ?? body, this.state, this.depth + 1).quoted(null);
    if (name === undefined || (operator === "" && operand !== "")) return UNKNOWN;
    const value = this.value(name, inQuotes);
    return value === UNKNOWN && /[-=]/.test(operator) ? operandValue : value;
  }

  /** @param {string} name @param {boolean} inQuotes @returns {string} */
  value(name, inQuotes) {
    const { vars } = this.state;
    const key = name.toLowerCase() === "home" ? "HOME" : name.replace(/^env:(\w+)$/i, (_, rest) => `env:${rest.toUpperCase()}`);
    const value = Object.hasOwn(vars, key) ? vars[key] : undefined;
    if (Array.isArray(value)) return value.length === 1 ? value[0] : `{${value.map((each) => mask(unmask(each))).join(",")}}`;
    if (typeof value !== "string") return UNKNOWN;
    return inQuotes ? mask(value) : value.replace(/[{},~]/g, mask).trim().replace(/\s+/g, FIELD);
  }
}

/**
 * {a,b} as the shell expands it, before anything else.
 * @param {string} raw
 * @returns {string[]}
 */
function braces(raw) {
  if (raw.split("{").length > MAX_BRACES) return [UNKNOWN]; // would make thousands of words
  for (let open = raw.indexOf("{"); open !== -1; open = raw.indexOf("{", open + 1)) {
    const parts = [];
    let depth = 0;
    let start = open + 1;
    for (let i = open; i < raw.length; i += 1) {
      if (raw[i] === "{") depth += 1;
      if (raw[i] === "}") depth -= 1;
      if ((raw[i] === "," && depth === 1) || (raw[i] === "}" && depth === 0)) {
        parts.push(raw.slice(start, i));
        start = i + 1;
      }
      if (depth > 0) continue;
      if (parts.length < 2) break;
      return parts.flatMap((part) => braces(raw.slice(0, open) + part + raw.slice(i + 1)));
    }
  }
  return [raw];
}
