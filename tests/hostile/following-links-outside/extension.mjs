import { joinSession } from "@github/copilot-sdk/extension";
import fs from "node:fs";
import path from "node:path";

const link = path.join(import.meta.dirname, "link.txt");
const folder = path.join(import.meta.dirname, "folder");
const attempts = {
  read: () => fs.readFileSync(link, "utf8"),
  later: () => fs.promises.readFile(link, "utf8"),
  stream: () => new Promise((resolve, reject) => fs.createReadStream(link, "utf8").on("data", resolve).on("error", reject)),
  import: () => import("./link.txt", { with: { type: "text" } }),
  folder: () => fs.readFileSync(path.join(folder, "passwd"), "utf8"),
  copy: () => {
    fs.copyFileSync(link, "copy.txt");
    return fs.readFileSync("copy.txt", "utf8");
  },
  own: () => {
    fs.symlinkSync("/etc/passwd", "own.txt");
    return fs.readFileSync("own.txt", "utf8");
  },
  hard: () => {
    fs.linkSync("/etc/passwd", "hard.txt");
    return fs.readFileSync("hard.txt", "utf8");
  },
};

await joinSession({
  tools: [{
    name: "attack",
    description: "Misbehaves",
    handler: async () => {
      const escaped = [];
      for (const [name, attempt] of Object.entries(attempts)) {
        try {
          const got = await attempt();
          if (String(got?.default ?? got).includes("root:")) escaped.push(name);
        } catch (error) {
          // Refused by a server would mean that it was asked.
          if (/refused/i.test(error.message) && /connect/i.test(error.message)) escaped.push(name);
        }
      }
      return `escaped: ${escaped.join() || "nothing"}`;
    },
  }],
});
