// node:process: where and who we are, the environment, and the queue before all others.

import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, realpathSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as prefixed from "node:process";
import * as bare from "process";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

const shell = (script) => execFileSync("sh", ["-c", script], { encoding: "utf8" }).trim();

async function check() {
  same("process is node:process", bare === prefixed && bare.default === prefixed.default, true);
  const process = prefixed.default;
  same("it is the global", process === globalThis.process, true);

  same("pid", String(process.pid), shell("echo $PPID"));
  same("ppid", Number.isInteger(process.ppid) && process.ppid > 0, true);
  same("ids", [process.getuid(), process.getgid()].join(":"), shell("echo $(id -u):$(id -g)"));
  same("platform", process.platform, shell("uname -s").toLowerCase());
  same("versions", [/^v\d+\.\d+\.\d+$/.test(process.version), `v${process.versions.node}`], [true, process.version]);
  same("argv", [process.argv.length >= 2, process.argv[1]?.endsWith("extension.mjs")], [true, true]);

  process.env.TENON_SPEC = "set here";
  same("a variable in a child", shell("echo $TENON_SPEC"), "set here");
  same("it is listed", Object.keys(process.env).includes("TENON_SPEC") && "TENON_SPEC" in process.env, true);
  process.env.TENON_SPEC = 5;
  same("values are text", process.env.TENON_SPEC === "5", true);
  delete process.env.TENON_SPEC;
  same("after delete", [process.env.TENON_SPEC, shell("echo ${TENON_SPEC-unset}")], [undefined, "unset"]);

  const home = process.cwd();
  same("cwd", home, shell("pwd -P"));
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "tenon-process-")));
  process.chdir(folder);
  same("chdir", [process.cwd(), shell("pwd -P")], [folder, folder]);
  process.chdir(home);
  rmdirSync(folder);
  const umask = process.umask(0o077);
  same("umask", [process.umask(umask), process.umask()], [0o077, umask]);

  const order = [];
  await new Promise((resolve) => {
    setImmediate(() => {
      Promise.resolve().then(() => order.push("promise")).then(resolve);
      process.nextTick((word) => order.push(word), "tick");
      order.push("now");
    });
  });
  same("nextTick comes first", order, ["now", "tick", "promise"]);

  const before = process.hrtime.bigint();
  const [seconds, nanoseconds] = process.hrtime();
  same("hrtime", process.hrtime.bigint() > before && seconds >= 0 && nanoseconds < 1e9, true);
  same("uptime", process.uptime() > 0, true);
  const memory = process.memoryUsage();
  same("memoryUsage", memory.rss > memory.heapUsed && memory.heapUsed > 0 && process.memoryUsage.rss() > 0, true);
  // The system counts in steps, and a new process may have used less than one.
  while (process.cpuUsage().user === 0);
  same("cpuUsage", process.cpuUsage().user > 0, true);

  const warning = once(process, "warning");
  process.emitWarning("careful", { type: "SpecWarning", code: "SPEC1" });
  const [{ name, message, code }] = await warning;
  same("a warning", [name, message, code], ["SpecWarning", "careful", "SPEC1"]);
  same("kill with signal 0", process.kill(process.pid, 0), true);
  let failure;
  try {
    process.kill(2 ** 22 + 1, 0);
  } catch (error) {
    failure = [error.code, error.syscall];
  }
  same("kill of nobody", failure, ["ESRCH", "kill"]);
  const written = await new Promise((resolve) => process.stdout.write("to the log\n", () => resolve(true)));
  same("stdout", [written, process.stdout.isTTY ?? false, process.stdin.fd], [true, false, 0]);

  return `${order.join(" ")}; ${name}`;
}

await joinSession({ tools: [{ name: "check_process", description: "Checks node:process", handler: check }] });
