// What is destructive, and what is protected. `judgeScript` and `judgePath` return findings.

import { realpathSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { DOWNLOAD, UNKNOWN, isDownloader, isUnknown, parse, plain, programOf, resolveWord } from "./shell.mjs";

/**
 * @typedef {"deny" | "ask"} Decision
 * @typedef {{ decision: Decision, reason: string, text?: string }} Finding `text` is the command that it is about
 *
 * @typedef {object} Protection
 * @property {string} glob
 * @property {RegExp} [except]
 * @property {Decision} write what writing means
 * @property {Decision} [read] what reading means
 * @property {string} advice what to do instead
 *
 * @typedef {object} Context
 * @property {string} cwd
 * @property {string} home
 * @property {string} root the workspace
 * @property {string} realRoot the same, with links followed
 * @property {(Protection & { pattern: RegExp })[]} protectedPaths
 * @property {string[]} commands collects what is judged, as the program would get it: without quotes and wrappers
 *
 * @typedef {{ text?: string, find?: string[], download?: boolean, hidden?: boolean }} Stream what is known about a pipe's content
 * @typedef {(args: string[], words: string[]) => void} Rule judges a program: its arguments, and all words of the command
 */

export const RULES = [
  "deny: deleting /, the home folder, the workspace, the current folder or anything outside the workspace (temporary folder: ask)",
  "deny: git push --force, writing to a disk device, mkfs and the like, fork bombs, changing rights outside the workspace, shutdown",
  "ask: sudo, scripts piped from the network into a shell, targets that only a run could tell",
  "ask: git reset --hard, clean -f, checkout -- ., restore ., push --force-with-lease, branch -D, stash drop and the like",
];

const SECRET = "Ask the person to do this";
/** @type {Protection[]} */
export const PROTECTED = [
  { glob: "**/.git/**", write: "deny", advice: "Use git commands to change the repository" },
  { glob: "**/.env*", except: /\.(example|sample|template|dist)$/i, write: "deny", read: "ask", advice: `${SECRET}, or edit .env.example` },
  { glob: "**/*.pem", write: "deny", read: "ask", advice: SECRET },
  { glob: "**/id_{rsa,dsa,ecdsa,ed25519}*", write: "deny", read: "ask", advice: SECRET },
  { glob: "~/.ssh/**", write: "deny", read: "ask", advice: SECRET },
  { glob: "/guard-rails.json", write: "ask", advice: "It is the policy of this guard" },
];

const SHELLS = new Set(["sh", "bash", "dash", "zsh", "ksh", "ash", "fish"]);
const INTERPRETERS = new Set(["python", "python3", "node", "perl", "ruby", "php", "deno", "bun"]);
const DECODERS = new Set(["base64", "xxd", "openssl", "gunzip", "zcat", "uudecode", "rev", "tr"]);
const DEVICE = /^\/dev\/(?!(?:null|zero|full|tty|stdin|stdout|stderr|random|urandom|ptmx)$|(?:fd|pts|shm)\/)./;
const READERS = new Set(`cat less more head tail tac nl grep egrep fgrep rg ag sed awk gawk cut sort uniq strings xxd od hexdump base64
  source . cp mv scp rsync tar zip gzip vim vi nano emacs code diff cmp openssl bat jq yq wc tee gpg get-content gc type select-string copy-item
  move-item ssh-keygen`.split(/\s+/));
// Programs that start another one: options that take a value, and words before the program.
/** @type {Record<string, { valued?: string, before?: number }>} */
const WRAPPERS = {
  sudo: { valued: "ughpCTrtUDR" }, doas: { valued: "uC" }, env: { valued: "uC" }, command: {}, builtin: {}, exec: { valued: "a" },
  nohup: {}, setsid: {}, time: { valued: "fo" }, nice: { valued: "n" }, ionice: { valued: "cnp" }, stdbuf: { valued: "ioe" },
  timeout: { valued: "sk", before: 1 }, busybox: {}, caffeinate: {}, chronic: {}, unbuffer: {}, xargs: { valued: "InLPdEsa" },
};
const VALUED = /^--(user|group|chdir|max-args|max-procs|delimiter|replace|signal|kill-after|unset|adjustment)$/;

/** @param {string} parent @param {string} child */
const inside = (parent, child) => child === parent || child.startsWith(parent.endsWith(path.sep) ? parent : parent + path.sep);
/** @param {string[]} words */
const operands = (words) => {
  const end = words.indexOf("--");
  return words.filter((word, index) => (end !== -1 && index > end) || (!/^-./.test(word) && word !== "--"));
};
/** @param {string[]} words */
const flags = (words) => {
  const end = words.indexOf("--");
  return words.slice(0, end === -1 ? undefined : end).filter((word) => /^-./.test(word)).map(plain);
};
/**
 * -r, -fr and --recursive; long options may be shortened as getopt allows.
 * @param {string[]} words
 * @param {string} short
 * @param {string[]} long
 */
const hasFlag = (words, short, ...long) => flags(words).some((flag) => (flag.startsWith("--")
  ? long.some((name) => flag.length > 4 && `--${name}`.startsWith(flag.split("=")[0]))
  : [...short].some((char) => flag.includes(char))));

/**
 * Real path of the part that exists, so that a link does not lead around a rule.
 * @param {string} file
 */
export function realPath(file) {
  /** @type {string[]} */
  const rest = [];
  for (let current = file; ; current = path.dirname(current)) {
    try {
      return path.join(realpathSync(current), ...rest);
    } catch {
      if (current === path.dirname(current)) return file;
      rest.unshift(path.basename(current));
    }
  }
}

/**
 * Without a slash a glob means files of that name anywhere; `/x` and `a/x` count from the workspace.
 * @param {string} glob
 * @param {{ root: string, home: string }} folders
 */
export function globToRegExp(glob, { root, home }) {
  let full = glob.replace(/\\/g, "/").replace(/\/$/, "/**");
  /** @param {string} text */
  const literal = (text) => text.replace(/\\/g, "/").replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  let prefix = ".*";
  if (full.startsWith("~/")) [prefix, full] = [literal(home), full.slice(1)];
  else if (full.startsWith("**/")) full = full.slice(2);
  else if (full.startsWith("/")) prefix = literal(root);
  else if (full.includes("/")) [prefix, full] = [literal(root), `/${full.replace(/^\.\//, "")}`];
  else full = `/${full}`;
  let depth = 0;
  const body = full.replace(/\/\*\*$|\/\*\*(?=\/)|\*\*|\*|\?|\[!?[^\]]*\]|[{},]|[.+^$()|\\]/g, (token, offset) => {
    if (token === "/**") return offset + 3 === full.length ? "(?:/.*)?" : "(?:/[^/]+)*";
    if (token === "**") return ".*";
    if (token === "*") return "[^/]*";
    if (token === "?") return "[^/]";
    if (token.startsWith("[")) return token.replace(/^\[!/, "[^");
    if (token === "{") return (depth += 1), "(?:";
    if (token === "}") return depth > 0 ? ((depth -= 1), ")") : "\\}";
    if (token === ",") return depth > 0 ? "|" : ",";
    return `\\${token}`;
  });
  return new RegExp(`^${prefix}${body}${")".repeat(depth)}$`, "i"); // file systems may ignore case
}

/**
 * Findings for one file that a tool or a command reads or writes.
 * @param {string} file
 * @param {"read" | "write"} access
 * @param {Context} context
 */
export function judgePath(file, access, context) {
  /** @type {Finding[]} */
  const findings = [];
  const names = [...new Set([file, realPath(file)])].map((name) => name.replace(/\\/g, "/"));
  for (const rule of context.protectedPaths) {
    const decision = rule[access];
    if (!decision || !names.some((name) => rule.pattern.test(name) && !rule.except?.test(name))) continue;
    const verb = access === "read" ? "Reading" : "Changing";
    findings.push({ decision, reason: `${verb} ${path.relative(context.root, file) || file} is protected (${rule.glob}). ${rule.advice}.` });
  }
  return findings;
}

/**
 * Why a recursive deletion, or change of rights, of `raw` is dangerous.
 * @param {string} raw
 * @param {string | null} cwd
 * @param {Context} context
 * @returns {[decision: Decision, why: string] | null}
 */
function judgeTree(raw, cwd, context) {
  const { root, home } = context;
  const unknown = raw.search(/[\uE100\uE101]/);
  if (unknown !== -1) {
    const before = raw.slice(0, unknown);
    if (!/[/\\]/.test(before) || /^(\.[/\\]+)+$/.test(before)) {
      return before === "" || /[/\\]$/.test(before) ? ["ask", "depends on a value that is only known when it runs"] : null;
    }
    return judgeTree(before.replace(/[^/\\]*$/, "") || "/", cwd, context);
  }
  // "dir/*" is dir's whole content; "dir/*.o" is something in dir.
  const parts = raw.split("/");
  const glob = parts.findIndex((part) => /[*?[]/.test(part));
  let target = raw;
  if (glob !== -1 && /^[.*?[\]!]+$/.test(parts[glob])) target = parts.slice(0, glob).join("/") || (raw.startsWith("/") ? "/" : ".");
  if (/^[A-Za-z]:[\\/]*\*?$|^[\\/]+\*?$/.test(plain(raw))) return ["deny", "is a whole drive"];
  const resolved = resolveWord(target, cwd, home);
  if (resolved === null) return ["ask", "is relative to a folder that is only known when it runs"];
  const real = path.join(realPath(path.dirname(resolved)), path.basename(resolved));
  if (resolved === home || inside(resolved, home)) return ["deny", "is the home folder, or contains it"];
  if (resolved === root || inside(resolved, root) || inside(real, context.realRoot)) return ["deny", "is the whole workspace, or contains it"];
  if (cwd !== null && inside(resolved, cwd)) return ["deny", "is the current folder, or contains it"];
  if ((inside(root, resolved) || inside(context.realRoot, resolved)) && inside(context.realRoot, real)) return null;
  // Scratch folders are named in full; "../x" is a neighbour of the workspace wherever that lies.
  const inTemp = path.isAbsolute(plain(raw)) && [os.tmpdir(), "/tmp", "/var/tmp"].some((temp) => resolved !== temp && inside(temp, resolved));
  return inTemp ? ["ask", "is outside the workspace"] : ["deny", "is outside the workspace"];
}

/**
 * All findings for a script.
 * @param {string} source
 * @param {Context} context
 * @param {{ powershell?: boolean, cwd?: string | null, depth?: number }} [options]
 */
export function judgeScript(source, context, { powershell = false, cwd = context.cwd, depth = 0 } = {}) {
  /** @type {Finding[]} */
  const findings = [];
  /** @type {Set<string>} */
  const functions = new Set();
  for (const pipeline of parse(source, { cwd, home: context.home, powershell, depth, functions })) {
    const text = pipeline.map(({ words }) => words.map(plain).join(" ")).join(" | ");
    const names = pipeline.map(({ words }) => programOf(words[0]));
    if (names.some((name, index) => functions.has(name) && names.indexOf(name) !== index)) {
      findings.push({ decision: "deny", reason: "A function that starts itself twice is a fork bomb.", text });
    }
    /** @type {Stream} */
    let stdin = {};
    for (const command of pipeline) {
      const judge = new Judge({ command, stdin, context, powershell, depth, findings, text });
      judge.redirects();
      judge.run(command.words);
      stdin = judge.output();
    }
  }
  return findings;
}

class Judge {
  /**
   * @param {object} given
   * @param {import("./shell.mjs").Command} given.command
   * @param {Stream} given.stdin
   * @param {Context} given.context
   * @param {boolean} given.powershell
   * @param {number} given.depth
   * @param {Finding[]} given.findings where to put what is found
   * @param {string} given.text the whole pipeline
   */
  constructor({ command, stdin, context, powershell, depth, findings, text }) {
    this.command = command;
    this.stdin = command.input === undefined ? stdin : { text: command.input };
    this.cwd = command.cwd;
    this.context = context;
    this.powershell = powershell;
    this.depth = depth;
    this.findings = findings;
    this.text = text;
  }

  /** @param {Decision} decision @param {string} reason @param {string[]} [words] */
  add(decision, reason, words) {
    this.findings.push({ decision, reason, text: words ? words.map(plain).join(" ") : this.text });
  }

  /** @param {string} source @param {{ powershell: boolean }} [options] */
  script(source, options) {
    this.findings.push(...judgeScript(source, this.context, { cwd: this.cwd, depth: this.depth + 1, powershell: this.powershell, ...options }));
  }

  /**
   * What the next command of the pipeline reads.
   * @returns {Stream}
   */
  output() {
    const { words, download } = this.command;
    const name = programOf(words[0]);
    const args = words.slice(1);
    if (name === "echo" || name === "printf") return { text: operands(args).map(plain).join(name === "echo" ? " " : "\n").replace(/\\n/g, "\n") };
    if (name === "cat" && operands(args).length === 0) return this.stdin;
    if (name === "find") return { find: args };
    return { download: download || this.stdin.download, hidden: this.stdin.hidden || DECODERS.has(name) };
  }

  redirects() {
    for (const { write, target } of this.command.redirects) this.file(target, write ? "write" : "read", this.command.words);
  }

  /** @param {string} raw @param {"read" | "write"} access @param {string[]} words */
  file(raw, access, words) {
    const file = resolveWord(raw, this.cwd, this.context.home);
    if (file === null) return;
    if (access === "write" && DEVICE.test(file)) {
      this.add("deny", `Writing to the device ${file} destroys what is on it. Write to a file in the workspace.`, words);
    }
    for (const finding of judgePath(file, access, this.context)) this.add(finding.decision, finding.reason, words);
  }

  /**
   * Judges one command, after taking off what only starts another one.
   * @param {string[]} given
   * @returns {void}
   */
  run(given) {
    let words = given;
    for (;;) {
      if (words.length === 0) return;
      const name = programOf(words[0]);
      const wrapper = Object.hasOwn(WRAPPERS, name) ? WRAPPERS[name] : null;
      if (!wrapper) break;
      if (name === "sudo" || name === "doas") this.add("ask", `${name} runs a command as another user. Do it without, or let the person decide.`, words);
      if (name === "command" && hasFlag(words.slice(1, 2), "vV")) return;
      let rest = words.slice(1);
      while (rest.length > 0) {
        const word = plain(rest[0]);
        if (word === "--") {
          rest = rest.slice(1);
          break;
        }
        const split = name === "env" ? /^(?:-S|--split-string=?)([^]*)/.exec(word) : null;
        if (split) return this.script([split[1], ...rest.slice(1).map(plain)].join(" "));
        if (/^[A-Za-z_]\w*=/.test(word) && /^(env|sudo|doas)$/.test(name)) rest = rest.slice(1);
        else if (/^-[^-]/.test(word)) rest = rest.slice(word.length === 2 && wrapper.valued?.includes(word[1]) ? 2 : 1);
        else if (word.startsWith("--")) rest = rest.slice(VALUED.test(word) ? 2 : 1);
        else break;
      }
      words = rest.slice(wrapper.before ?? 0);
      if (name === "xargs") return this.xargs(words);
    }
    this.context.commands.push(words.map(plain).join(" "));
    this.program(programOf(words[0]), words.slice(1), words);
  }

  /**
   * The arguments come from the pipeline: known from echo and find, unknown otherwise.
   * @param {string[]} words
   */
  xargs(words) {
    if (this.stdin.find && ["rm", "unlink", "shred"].includes(programOf(words[0]))) return this.find(this.stdin.find, true);
    const known = this.stdin.text !== undefined ? this.stdin.text.split(/\s+/).filter(Boolean) : [UNKNOWN];
    // Names of single files that a program lists are what xargs is for; folders are not.
    if (programOf(words[0]) === "rm" && known[0] === UNKNOWN && !hasFlag(words, "rR", "recursive")) return;
    this.run([...words, ...known]);
  }

  /** @param {string} name @param {string[]} args @param {string[]} words */
  program(name, args, words) {
    const lower = name.toLowerCase();
    if (this.powershell || /^(remove-item|ri|rd|del|erase)$/.test(lower)) {
      if (/^(remove-item|ri|rm|rmdir|rd|del|erase)$/.test(lower)) return this.removeItem(args, words);
    }
    if (isUnknown(words[0])) {
      if (args.some((arg) => judgeTree(arg, this.cwd, this.context)?.[0] === "deny" && /[/~]/.test(arg[0] ?? ""))) {
        this.add("ask", "The program is only known when it runs, and it is given a folder outside the workspace. Write the command out.", words);
      }
      return;
    }
    if (SHELLS.has(name)) return this.shell(args, words);
    if (INTERPRETERS.has(name) && this.stdin.download && operands(args).every((arg) => arg === "-") && !hasFlag(args, "cem")) return this.fromNetwork(words);
    if (/^(pwsh|powershell|cmd)$/.test(lower)) {
      const at = args.findIndex((arg) => /^(-c(o(m(m(a(nd?)?)?)?)?)?|\/c|\/k)$/i.test(arg));
      return at === -1 ? undefined : this.script(args.slice(at + 1).map(plain).join(" "), { powershell: true });
    }
    if (name === "trap") return this.script(plain(operands(args)[0] ?? ""));
    if (name === "eval" || name === "su") {
      if (name === "su") this.add("ask", "su runs a command as another user. Do it without, or let the person decide.", words);
      if (args.some((arg) => arg.includes(DOWNLOAD))) this.fromNetwork(words);
      const at = name === "su" ? args.indexOf("-c") + 1 : 0;
      if (name === "eval" || at > 0) this.script(args.slice(at).map(plain).join(" "));
      return;
    }
    if (name === "source" || name === ".") {
      if (args.some((arg) => arg.includes(DOWNLOAD))) this.fromNetwork(words);
    }
    if (/^(iex|invoke-expression)$/.test(lower)) {
      if (this.stdin.download || args.some((arg) => arg.includes(DOWNLOAD)) || /downloadstring/i.test(this.text)) return this.fromNetwork(words);
      return this.script(args.map(plain).join(" "), { powershell: true });
    }
    if (name === "git") return this.git(args, words);
    if (name === "rm") this.rm(args, words);
    if (name === "find") this.find(args, false);
    if (/^(chmod|chown|chgrp)$/.test(name) && hasFlag(args, "R", "recursive")) this.rights(args, words);
    if (/^(mkfs(\..+)?|mke2fs|mkswap|wipefs|format-volume|clear-disk|initialize-disk|remove-partition)$/.test(lower)) {
      this.add("deny", `${name} erases a disk. Nothing in a workspace needs it.`, words);
    }
    if (/^(fdisk|sfdisk|sgdisk|parted|diskpart)$/.test(lower)) this.add("ask", `${name} changes the partitions of a disk.`, words);
    if (/^(shutdown|reboot|halt|poweroff|stop-computer|restart-computer)$/.test(lower)
      || (/^(init|telinit)$/.test(name) && /^[06]$/.test(args[0] ?? ""))
      || (name === "systemctl" && args.some((arg) => /^(poweroff|reboot|halt|kexec|suspend|hibernate)$/.test(arg)))) {
      this.add("deny", "It stops the machine, and this session with it. Ask the person to do it.", words);
    }
    if (name === "crontab" && hasFlag(args, "r")) this.add("ask", "It deletes all scheduled jobs. Use crontab -l first.", words);
    for (const target of this.written(lower, args)) this.file(target, "write", words);
    if (READERS.has(lower)) for (const operand of operands(args)) this.file(operand, "read", words);
    if (isDownloader(name)) {
      for (const [index, arg] of args.entries()) {
        const sent = /@([^]+)$/.exec(arg)?.[1] ?? (/^(-T|--upload-file)$/.test(args[index - 1] ?? "") ? arg : null);
        if (sent && !arg.includes("://")) this.file(sent, "read", words);
      }
    }
  }

  /** @param {string[]} [words] */
  fromNetwork(words) {
    this.add("ask", "It runs a script straight from the network. Download it to a file, read it, and run that.", words === this.command.words ? undefined : words);
  }

  /** @type {Rule} */
  shell(args, words) {
    const at = args.findIndex((arg) => /^-[a-zA-Z]*c[a-zA-Z]*$/.test(arg));
    if (at !== -1) {
      const script = args.slice(at + 1).find((arg) => !/^[-+]/.test(arg)) ?? "";
      if (script.includes(DOWNLOAD)) this.fromNetwork(words);
      return this.script(plain(script), { powershell: false });
    }
    const [file] = operands(args);
    if (file?.includes(DOWNLOAD)) return this.fromNetwork(words);
    if (file !== undefined && !hasFlag(args, "s")) return;
    if (this.stdin.text !== undefined) return this.script(this.stdin.text, { powershell: false });
    if (this.stdin.download) return this.fromNetwork();
    if (this.stdin.hidden) this.add("ask", "It runs a script that is encoded. Decode it to a file, read it, and run that.");
  }

  /**
   * The files that a program overwrites, removes or creates.
   * @param {string} name
   * @param {string[]} args
   */
  written(name, args) {
    const files = operands(args);
    if (/^(tee|touch|truncate|rm|unlink|rmdir|shred|mv|move-item|set-content|add-content|out-file|new-item|clear-content)$/.test(name)) return files;
    if (/^(cp|install|ln|rsync|scp|copy-item)$/.test(name)) return files.length > 1 ? files.slice(-1) : [];
    if (/^(sed|perl)$/.test(name)) return flags(args).some((flag) => /^-[a-zA-Z]*i|^--in-place/.test(flag)) ? files : [];
    if (/^(chmod|chown|chgrp)$/.test(name)) return files.slice(1);
    if (name === "dd") return args.filter((arg) => arg.startsWith("of=")).map((arg) => arg.slice(3));
    return [];
  }

  /** @type {Rule} */
  rm(args, words) {
    if (flags(args).includes("--no-preserve-root")) this.add("deny", "--no-preserve-root deletes the whole system.", words);
    if (hasFlag(args, "rR", "recursive")) return this.delete(operands(args), words);
    for (const raw of operands(args)) {
      const [decision, why] = judgeTree(raw, this.cwd, this.context) ?? [];
      const file = resolveWord(raw, this.cwd, this.context.home);
      if (raw === "*" || raw === "./*") this.add("ask", "It deletes every file of the current folder. Name the files.", words);
      else if (decision === "deny" && file !== null) this.add("ask", `${plain(raw)} ${why}. Delete files of the workspace only.`, words);
    }
  }

  /** @type {Rule} */
  removeItem(args, words) {
    const recursive = args.some((arg) => /^-r(e(c(u(r(se?)?)?)?)?)?(:|$)|^\/s$/i.test(arg)) || /^-[a-z]*r[a-z]*f|^-[a-z]*f[a-z]*r/.test(args[0] ?? "");
    const targets = args.filter((arg, index) => !/^-|^\/[a-z]$/i.test(arg) && !/^-(exclude|include|filter|erroraction|ea)$/i.test(args[index - 1] ?? ""));
    for (const target of targets) this.file(target, "write", words);
    if (recursive) this.delete(targets.flatMap((target) => plain(target).split(",")).map((target) => (target === "${_}" ? UNKNOWN : target)), words);
  }

  /** @param {string[]} targets @param {string[]} words */
  delete(targets, words) {
    for (const raw of targets) {
      const [decision, why] = judgeTree(raw, this.cwd, this.context) ?? [];
      if (decision) this.add(decision, `Deleting ${plain(raw)} is dangerous: it ${why}. Name the folders of the workspace that have to go.`, words);
    }
  }

  /**
   * `find ... -delete`, `-exec`, and `find ... | xargs rm` with `deletes`.
   * @param {string[]} args
   * @param {boolean} deletes
   */
  find(args, deletes) {
    const words = ["find", ...args];
    const start = args.findIndex((arg) => !/^-([HLP]|O\d)$/.test(arg));
    const from = start === -1 ? [] : args.slice(start);
    const end = from.findIndex((arg) => /^[-(!]/.test(arg));
    const roots = end === -1 ? from : from.slice(0, end);
    const tests = end === -1 ? [] : from.slice(end);
    let removes = deletes || tests.includes("-delete");
    for (const [index, test] of tests.entries()) {
      if (!/^-(exec|ok)(dir)?$/.test(test)) continue;
      const stop = tests.findIndex((word, at) => at > index && (word === ";" || word === "+"));
      const inner = tests.slice(index + 1, stop === -1 ? undefined : stop);
      if (/^(rm|unlink|shred)$/.test(programOf(inner.find((word) => !/^(sudo|command|env)$/.test(word))))) removes = true;
      this.run(inner.filter((word) => plain(word) !== "{}"));
    }
    if (!removes) return;
    // A test that picks files makes the workspace a fair place to look in; it saves nothing outside.
    const picks = tests.some((test) => /^-(i?name|i?path|i?regex|[acm]?newer.*|[acm](time|min)|size|empty|user|perm|links)$/.test(test));
    for (const root of roots.length > 0 ? roots : ["."]) {
      const [decision, why] = judgeTree(root, this.cwd, this.context) ?? [];
      const place = resolveWord(root, this.cwd, this.context.home);
      if (decision && !(picks && place !== null && inside(this.context.root, place))) {
        this.add(decision, `Deleting what find lists below ${plain(root)} is dangerous: it ${why}. Start in a folder of the workspace.`, words);
      }
    }
  }

  /** @type {Rule} */
  rights(args, words) {
    const [mode, ...targets] = operands(args);
    for (const raw of targets) {
      const [decision, why] = judgeTree(raw, this.cwd, this.context) ?? [];
      const own = /workspace, or|current folder/.test(why ?? "") && inside(this.context.root, resolveWord(raw, this.cwd, this.context.home) ?? "");
      if (decision && !own) this.add(decision, `Changing rights below ${plain(raw)} is dangerous: it ${why}. Name the files that need it.`, words);
      else if (/^0?777$|^(a|ugo)?[+=]rwx$/.test(plain(mode ?? ""))) this.add("ask", "It lets everybody write everything. Give only the rights that are needed.", words);
    }
  }

  /** @type {Rule} */
  git(given, words) {
    let args = given;
    let cwd = this.cwd;
    while (args.length > 0 && args[0].startsWith("-")) {
      const alias = args[0] === "-c" ? /^alias\.[^=]+=!([^]*)$/.exec(plain(args[1] ?? "")) : null;
      if (alias) this.script(alias[1]);
      if (args[0] === "-C") cwd = resolveWord(args[1] ?? "", cwd, this.context.home);
      args = args.slice(/^(-C|-c|--git-dir|--work-tree|--namespace|--exec-path)$/.test(args[0]) ? 2 : 1);
    }
    const [command, ...rest] = args.map((arg) => (arg === UNKNOWN ? arg : plain(arg)));
    const all = rest.some((arg) => /^(\.|\.\/|:\/|:\/\.?|\*|\.\/\*)$/.test(arg));
    /** @param {string[]} names */
    const long = (...names) => flags(rest).some((flag) => names.includes(flag.split("=")[0]));
    /** @param {string} chars */
    const short = (chars) => flags(rest).some((flag) => !flag.startsWith("--") && [...chars].some((char) => flag.includes(char)));
    /** @param {string} reason */
    const ask = (reason) => this.add("ask", `${reason} Let the person confirm it.`, words);
    switch (command) {
      case "push":
        if (long("--force") || short("f") || operands(rest).some((arg) => arg.startsWith("+")) || long("--mirror")) {
          this.add("deny", "It overwrites the history of a remote branch for everybody. Push a new commit, or use --force-with-lease.", words);
        } else if (long("--force-with-lease")) ask("It replaces the history of a remote branch.");
        else if (long("--delete", "--prune") || short("d") || operands(rest).some((arg) => /^:./.test(arg))) ask("It deletes a remote branch.");
        break;
      case "reset":
        if (long("--hard")) ask("It throws uncommitted changes away; commit or stash them first.");
        break;
      case "clean":
        if ((long("--force") || short("f")) && !long("--dry-run") && !short("n")) ask("It deletes untracked files for good; look at git clean -n first.");
        break;
      case "checkout":
      case "restore":
      case "switch": {
        const stagedOnly = command === "restore" && (long("--staged") || short("S")) && !(long("--worktree") || short("W"));
        if ((all && !stagedOnly) || (command !== "restore" && (long("--force", "--discard-changes") || short("f")))) {
          ask("It throws uncommitted changes away; commit or stash them first, or name the files.");
        }
        break;
      }
      case "stash":
        if (/^(drop|clear)$/.test(rest[0] ?? "")) ask("It deletes stashed changes for good.");
        break;
      case "branch":
        if (short("D") || ((long("--delete") || short("d")) && (long("--force") || short("f")))) ask("It deletes a branch even if it is not merged.");
        break;
      case "filter-branch":
      case "filter-repo":
        ask("It rewrites the whole history.");
        break;
      case "reflog":
        if (/^(expire|delete)$/.test(rest[0] ?? "")) ask("It deletes what undoes mistakes.");
        break;
      case "update-ref":
        if (short("d")) ask("It deletes a reference.");
        break;
      case "rm":
      case "mv":
        for (const file of operands(rest)) this.file(file, "write", words);
        break;
      case "add":
        for (const file of operands(rest)) this.file(file, "read", words);
        break;
      case "submodule":
        if (rest[0] === "foreach") this.script(operands(rest.slice(1)).join(" "));
        break;
      default:
    }
  }
}
