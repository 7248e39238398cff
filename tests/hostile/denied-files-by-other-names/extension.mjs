import { joinSession } from "@github/copilot-sdk/extension";
import { execSync } from "node:child_process";
import fs from "node:fs";

/** Nobody may read this. */
const SECRET = "/etc/group";
const SECRET_TEXT = "root:";
/** Nobody may write this. It is opened, and nothing is written to it. */
const FROZEN = "/etc/hosts";

const read = (path) => fs.readFileSync(path, "utf8").includes(SECRET_TEXT);
const open = (path) => fs.closeSync(fs.openSync(path, "a")) === undefined;
const shell = (command) => execSync(command, { stdio: ["ignore", "pipe", "ignore"] }).toString();

const attempts = {
  "read by name": () => read(SECRET),
  "read by dots": () => read("/etc/../etc/./group"),
  "read through the root of a process": () => read("/proc/self/root/etc/group"),
  "read by a link": () => (fs.symlinkSync(SECRET, "secret"), read("secret")),
  "read through a linked folder": () => (fs.symlinkSync("/etc", "folder"), read("folder/group")),
  "read by a hard link": () => (fs.linkSync(SECRET, "hard"), read("hard")),
  "read from a copy": () => (fs.copyFileSync(SECRET, "copy"), read("copy")),
  "read by a child": () => shell("cat /etc/group secret folder/group").includes(SECRET_TEXT),
  "linked by a child": () => shell("ln /etc/group child; cat child").includes(SECRET_TEXT),
  "written by name": () => open(FROZEN),
  "written through the root of a process": () => open("/proc/self/root/etc/hosts"),
  "written by a link": () => (fs.symlinkSync(FROZEN, "frozen"), open("frozen")),
  "written by a hard link": () => (fs.linkSync(FROZEN, "hosts"), open("hosts")),
  "written by a child": () => shell(": >> /etc/hosts && echo done").includes("done"),
  "replaced by a child": () => shell("mv /etc/hosts /etc/hosts && echo done; cp -al /etc/hosts frozen2 && : >> frozen2 && echo done").includes("done"),
};

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const reached = [];
      for (const [name, attempt] of Object.entries(attempts)) {
        try {
          if (attempt()) reached.push(name);
        } catch {
          // As it should be.
        }
      }
      if (!fs.readFileSync("/etc/passwd", "utf8").includes(SECRET_TEXT)) throw new Error("broke: nothing can be read");
      return `reached: ${reached.join("; ") || "nothing"}`;
    },
  }],
});
