// Real coding agents through Tenon, offline: see README.md.
//
// usage: node run.mjs [--tenon PATH] [--agents DIR] [--acpx] [--watch] [--bodies] [--keep] [NAME ...]

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, delimiter, dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";

import { AGENTS } from "./agents.mjs";
import { behindAcpx, guard, killed, story } from "./scenes.mjs";
import { Stage, find, searchPath } from "./stage.mjs";

/** How long a program may take to say its version, in milliseconds. */
const VERSION_MS = 60_000;

const USAGE = `usage: node run.mjs [--tenon PATH] [--agents DIR] [--acpx] [--watch] [--bodies] [--keep] [NAME ...]

  --tenon PATH   the program under test [default: $TENON_BIN, or tenon on the PATH]
  --agents DIR   a folder in which agents were installed with npm; the PATH is searched as well
  --acpx         instead of the stories, drive \`tenon acp\` with the ACP client acpx
  --watch        let Tenon watch the files, as it usually does; otherwise only extensions_reload loads them
  --bodies       log the requests to the model as a whole
  --keep         keep the logs also when everything went well

Agents: ${Object.keys(AGENTS).join(", ")}`;

function fail(message) {
  console.error(message);
  process.exit(2);
}

function options() {
  let parsed;
  try {
    parsed = parseArgs({
      allowPositionals: true,
      options: {
        tenon: { type: "string" },
        agents: { type: "string" },
        acpx: { type: "boolean", default: false },
        watch: { type: "boolean", default: false },
        bodies: { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    fail(`${error.message}\n\n${USAGE}`);
  }
  const { values, positionals } = parsed;
  if (values.help) {
    console.log(USAGE);
    process.exit(0);
  }
  const names = positionals.length > 0 ? positionals : Object.keys(AGENTS);
  const unknown = names.find((name) => !Object.hasOwn(AGENTS, name));
  if (unknown) fail(`there is no agent "${unknown}"\n\n${USAGE}`);
  const wanted = values.tenon ?? process.env.TENON_BIN;
  const onPath = find("tenon", searchPath());
  const tenon = wanted ? resolve(wanted) : onPath && join(onPath, "tenon");
  if (!tenon || !find(basename(tenon), [dirname(tenon)])) fail(`there is no tenon; name it with --tenon\n\n${USAGE}`);
  return { ...values, agents: values.agents && resolve(values.agents), names, tenon };
}

/** Where an agent is installed, and with which folders on the PATH it runs; nothing if it is not. */
function locate(name, agentsFolder) {
  const { program, places } = AGENTS[name];
  const path = searchPath(agentsFolder, places);
  const folder = find(program, path);
  return folder && { program: join(folder, program), path };
}

function version(program, path, home) {
  const env = { PATH: path.join(delimiter), HOME: home, COPILOT_AUTO_UPDATE: "false", COPILOT_OFFLINE: "true" };
  const said = spawnSync(program, ["--version"], { env, encoding: "utf8", timeout: VERSION_MS, cwd: home });
  return `${said.stdout ?? ""}`.match(/\d+\.\d+\.\d+\S*/)?.[0].replace(/\.$/, "") ?? "unknown";
}

function table(rows) {
  // The last cell of a shorter row goes over several columns.
  const length = (row, column) => (row.length < rows[0].length && column >= row.length - 1 ? 0 : row[column].length);
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => length(row, column))));
  for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column])).join("  ").trimEnd());
}

const word = (failures) => (failures === undefined ? "-" : failures.length === 0 ? "ok" : "FAILED");
const howToInstall = (name) => `skipped: not installed; npm install -g ${AGENTS[name].install}`;

/** Plays one scene in a place of its own. */
async function play(scene, where, agent, more) {
  const stage = new Stage(where);
  try {
    return await scene(stage, agent, more);
  } finally {
    await stage.end();
  }
}

async function stories(given, logs) {
  const rows = [["AGENT", "VERSION", "STORY", "RESUME", "GUARD", "KILLED", "AFTER A DENIAL THE TURN", "TIME"]];
  const report = {};
  const notes = [];
  for (const name of given.names) {
    const located = locate(name, given.agents);
    if (!located) {
      rows.push([name, "-", howToInstall(name)]);
      continue;
    }
    const root = join(logs, name);
    const began = Date.now();
    const where = (scene) => ({ root: join(root, scene), name, tenon: given.tenon, path: located.path });
    const result = (report[name] = { program: located.program });
    try {
      Object.assign(result, await play(story, where("story"), AGENTS[name], given));
      Object.assign(result, await play(guard, where("guard"), AGENTS[name], given));
      Object.assign(result, await play(killed, where("killed"), AGENTS[name], given));
    } catch (error) {
      result.story ??= [];
      result.story.push(String(error));
    }
    result.version = version(located.program, located.path, join(root, "story", "home"));
    result.seconds = (Date.now() - began) / 1000;
    const parts = { story: result.story, resume: result.later, guard: result.guard, killed: result.killed };
    for (const [part, failures] of Object.entries(parts)) {
      for (const failure of failures ?? []) notes.push(`${name}, ${part}: expected: ${failure}`);
    }
    const guarded = result.asks === false ? "does not ask" : word(result.guard);
    const time = `${result.seconds.toFixed(1)} s`;
    const words = [word(result.story), word(result.later), guarded, word(result.killed)];
    rows.push([name, result.version, ...words, result.afterwards ?? "-", time]);
    if (process.stderr.isTTY) console.error(`${name}: ${words.join(", ")}`);
  }
  table(rows);
  return { report, notes };
}

async function clients(given, logs) {
  const folder = find("acpx", searchPath(given.agents));
  if (!folder) {
    console.log("skipped: acpx is not installed; npm install -g acpx");
    return { report: {}, notes: [] };
  }
  const acpx = join(folder, "acpx");
  const real = given.names.find((name) => locate(name, given.agents));
  const rows = [["AGENT", "ACPX", "TIME"]];
  const report = {};
  const notes = [];
  for (const name of ["demo", ...(real ? [real] : [])]) {
    const path = name === "demo" ? searchPath(given.agents) : locate(name, given.agents).path;
    const where = { root: join(logs, name), name, tenon: given.tenon, path };
    let result;
    try {
      result = await play(behindAcpx, where, AGENTS[name] ?? {}, { ...given, acpx });
    } catch (error) {
      result = { acpx: [String(error)], seconds: 0 };
    }
    report[name] = result;
    notes.push(...result.acpx.map((failure) => `${name}, acpx: expected: ${failure}`));
    rows.push([name, word(result.acpx), `${result.seconds.toFixed(1)} s`]);
  }
  if (!real) rows.push(["-", "skipped: no agent is installed", ""]);
  table(rows);
  return { report, notes };
}

const given = options();
const logs = mkdtempSync(join(tmpdir(), "tenon-agents-"));
const { report, notes } = await (given.acpx ? clients : stories)(given, logs);
writeFileSync(join(logs, "report.json"), `${JSON.stringify(report, undefined, 2)}\n`);
for (const note of notes) console.log(note);
if (notes.length > 0 || given.keep) console.log(`logs: ${logs}`);
else rmSync(logs, { recursive: true, force: true });
process.exit(notes.length > 0 ? 1 : 0);
