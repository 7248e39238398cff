// node:child_process: runs programs, talks to them through pipes and learns how they ended.

import * as prefixed from "node:child_process";
import { once } from "node:events";
import { promisify } from "node:util";
import * as bare from "child_process";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

async function textOf(stream) {
  let text = "";
  for await (const chunk of stream.setEncoding("utf8")) text += chunk;
  return text;
}

async function check() {
  same("child_process is node:child_process", bare === prefixed && bare.default === prefixed.default, true);
  const { exec, execFile, execFileSync, execSync, spawn, spawnSync } = prefixed;

  // A conversation: the second line is sent only after the answer to the first has come back.
  const cat = spawn("cat");
  same("a process has a number", Number.isInteger(cat.pid) && cat.pid > 1, true);
  cat.stdout.setEncoding("utf8");
  cat.stdin.write("first\n");
  const [first] = await once(cat.stdout, "data");
  same("the first answer", first, "first\n");
  cat.stdin.write("second\n");
  const [second] = await once(cat.stdout, "data");
  cat.stdin.end();
  same("how cat ended", await once(cat, "close"), [0, null]);
  same("its exit code", cat.exitCode, 0);

  const sh = spawn("sh", ["-c", 'echo "$WORD in $(pwd)"; echo oops >&2; exit 3'], {
    cwd: "/", env: { PATH: process.env.PATH, WORD: "hello" },
  });
  const [out, err, [code]] = await Promise.all([textOf(sh.stdout), textOf(sh.stderr), once(sh, "exit")]);
  same("output, errors and exit code", [out, err, code], ["hello in /\n", "oops\n", 3]);

  const sleeper = spawn("sleep", ["600"], { stdio: "ignore" });
  await once(sleeper, "spawn");
  same("kill", sleeper.kill("SIGTERM"), true);
  same("how the sleeper ended", await once(sleeper, "exit"), [null, "SIGTERM"]);
  same("what is known of it", [sleeper.killed, sleeper.signalCode], [true, "SIGTERM"]);

  const stopper = new AbortController();
  const stopped = spawn("sleep", ["600"], { signal: stopper.signal });
  const stop = once(stopped, "error").catch((error) => [error]);
  stopper.abort();
  same("an aborted process", (await stop)[0].name, "AbortError");

  const [missing] = await once(spawn("/no/such/program"), "error");
  same("a missing program", [missing.code, missing.syscall], ["ENOENT", "spawn /no/such/program"]);

  // Arguments are passed as they are, with no shell between.
  same("execFileSync", execFileSync("printf", ["%s|", "a b", "$HOME", "*"], { encoding: "utf8" }), "a b|$HOME|*|");
  same("input", execFileSync("tr", ["a-z", "A-Z"], { input: "loud" }).toString(), "LOUD");
  same("execSync", execSync("echo one two | wc -w").toString().trim(), "2");
  const sync = spawnSync("sh", ["-c", "echo out; echo err >&2; kill -9 $$"], { encoding: "utf8" });
  same("spawnSync", [sync.stdout, sync.stderr, sync.status, sync.signal], ["out\n", "err\n", null, "SIGKILL"]);
  let thrown;
  try {
    execFileSync("sh", ["-c", "echo why >&2; exit 4"], { stdio: "pipe" });
  } catch (error) {
    thrown = [error.status, error.stderr.toString()];
  }
  same("what execFileSync throws", thrown, [4, "why\n"]);
  same("a timeout", spawnSync("sleep", ["600"], { timeout: 50 }).error?.code, "ETIMEDOUT");

  const { stdout } = await promisify(execFile)("sh", ["-c", "cat /dev/zero | head -c 300000 | wc -c"]);
  same("promisified execFile", stdout.trim(), "300000");
  const failure = await promisify(exec)("echo partial; exit 5").catch((error) => [error.code, error.stdout]);
  same("a promisified failure", failure, [5, "partial\n"]);
  const large = await promisify(execFile)("head", ["-c", "900000", "/dev/zero"], { encoding: "buffer" });
  same("a large output", large.stdout.length, 900_000);

  return `cat said ${second.trim()}, sh exited with ${code}`;
}

await joinSession({ tools: [{ name: "check_child_process", description: "Checks node:child_process", handler: check }] });
