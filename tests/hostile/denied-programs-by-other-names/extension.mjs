import { joinSession } from "@github/copilot-sdk/extension";
import { execSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";

/** What the program prints. */
const MARK = "uid=";

function run(command, options) {
  const { stdout, stderr, error } = spawnSync(command, [], options);
  return `${stdout} ${stderr} ${error?.message}`;
}

const place = path.resolve("names");
const attempts = {
  name: () => run("id"),
  path: () => run("/usr/bin/id"),
  link: () => run("/bin/id"),
  dots: () => run("/usr/bin/../bin/./id"),
  relative: () => run(path.relative(process.cwd(), "/usr/bin/id")),
  "own link": () => run(path.join(place, "link")),
  "link in the path": () => run("link", { env: { PATH: `${place}:/usr/bin` } }),
  "link of a link": () => run("names/second"),
  "hard link": () => run(path.join(place, "hard")),
  copy: () => run(path.join(place, "copy")),
  root: () => run("/proc/self/root/usr/bin/id"),
  shell: () => execSync("id || /usr/bin/id || names/link || exec -a true id; true").toString(),
  env: () => spawnSync("env", ["id"]).stdout.toString(),
  loader: () => execSync("for it in /lib64/ld-linux-*.so.* /lib/ld-linux-*.so.*; do $it /usr/bin/id; done; true").toString(),
};

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      fs.mkdirSync(place);
      fs.symlinkSync("/usr/bin/id", path.join(place, "link"));
      fs.symlinkSync("link", path.join(place, "second"));
      for (const make of [fs.linkSync, fs.copyFileSync]) {
        try {
          make("/usr/bin/id", path.join(place, make === fs.linkSync ? "hard" : "copy"));
        } catch {
          // It cannot even be read.
        }
      }
      const started = [];
      for (const [name, attempt] of Object.entries(attempts)) {
        try {
          if (attempt().includes(MARK)) started.push(name);
        } catch {
          // As it should be.
        }
      }
      if (!run("true").includes("undefined")) throw new Error("broke: nothing can be started at all");
      return `started: ${started.join() || "nothing"}`;
    },
  }],
});
