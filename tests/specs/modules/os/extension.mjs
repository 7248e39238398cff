// node:os: says of the machine what uname, id and the environment say.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import * as prefixed from "node:os";
import * as bare from "os";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

const output = (command, ...args) => execFileSync(command, args, { encoding: "utf8" }).trim();

function check() {
  same("os is node:os", bare === prefixed && bare.default === prefixed.default, true);
  const os = prefixed.default;
  same("uname", [os.type(), os.release(), os.hostname()], ["-s", "-r", "-n"].map((flag) => output("uname", flag)));
  same("machine", os.machine(), output("uname", "-m"));
  same("platform and arch", [os.platform(), os.arch()], [process.platform, process.arch]);
  same("EOL and devNull", [os.EOL, os.devNull], ["\n", "/dev/null"]);
  same("homedir", os.homedir(), process.env.HOME);
  same("tmpdir", [os.tmpdir(), existsSync(os.tmpdir())], [(process.env.TMPDIR ?? "/tmp").replace(/\/$/, ""), true]);

  const user = os.userInfo();
  same("the user", [user.username, user.uid, user.gid], [output("id", "-un"), +output("id", "-u"), +output("id", "-g")]);
  const cpus = os.cpus();
  same("a cpu", typeof cpus[0].model === "string" && cpus[0].times.user >= 0, true);
  same("availableParallelism", Number.isInteger(os.availableParallelism()) && os.availableParallelism() >= 1, true);
  same("memory", os.totalmem() > os.freemem() && os.freemem() > 0, true);
  same("uptime", os.uptime() > 0, true);
  same("loadavg", os.loadavg().length === 3 && os.loadavg().every((load) => load >= 0), true);
  same("endianness", os.endianness(), new Uint8Array(new Uint16Array([1]).buffer)[0] ? "LE" : "BE");
  for (const address of Object.values(os.networkInterfaces()).flat()) {
    same("a network address", ["IPv4", "IPv6"].includes(address.family) && typeof address.internal === "boolean", true);
  }

  const { signals, errno } = os.constants;
  same("constants", [signals.SIGKILL, signals.SIGTERM, errno.ENOENT], [9, 15, 2]);
  same("getPriority", os.getPriority(), Number(output("nice")));
  return `${os.endianness()} ${os.devNull}`;
}

await joinSession({ tools: [{ name: "check_os", description: "Checks node:os", handler: check }] });
