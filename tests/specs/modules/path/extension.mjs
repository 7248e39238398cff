// node:path: joins, takes apart and relates paths, in both flavours.

import * as prefixed from "node:path";
import * as bare from "path";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

function check() {
  same("path is node:path", bare === prefixed && bare.default === prefixed.default, true);
  const { default: path, posix, win32 } = prefixed;
  same("path is path.posix", path === posix, true);

  same("join", path.join("/a", "b/./c", "..", "d.txt"), "/a/b/d.txt");
  same("resolve from the working directory", path.resolve("x", "../y"), `${process.cwd()}/y`);
  same("resolve stops at a root", path.resolve("/a", "/b", "c"), "/b/c");
  same("relative", path.relative("/a/b/c", "/a/d"), "../../d");
  same("normalize", path.normalize("/a//b/../c/."), "/a/c");
  same("basename", path.basename("/a/b.test.js", ".js"), "b.test");
  same("extname", [path.extname("a.tar.gz"), path.extname(".bashrc"), path.extname("a.")], [".gz", "", "."]);
  same("isAbsolute", [path.isAbsolute("/a"), path.isAbsolute("./a")], [true, false]);
  same("matchesGlob", [path.matchesGlob("src/a/b.ts", "src/**/*.ts"), path.matchesGlob("b.js", "*.ts")], [true, false]);

  const parsed = path.parse("/home/me/notes.md");
  same("parse", parsed, { root: "/", dir: "/home/me", base: "notes.md", ext: ".md", name: "notes" });
  same("format undoes parse", path.format(parsed), "/home/me/notes.md");

  same("win32.join", win32.join("C:\\a", "..", "b"), "C:\\b");
  same("win32.parse", win32.parse("C:\\dir\\f.txt").root, "C:\\");
  same("separators", [posix.sep, posix.delimiter, win32.sep, win32.delimiter], ["/", ":", "\\", ";"]);

  let code;
  try {
    path.join("a", 1);
  } catch (error) {
    code = error.code;
  }
  same("the code for a wrong type", code, "ERR_INVALID_ARG_TYPE");

  return `${path.relative("/work/repo/src", "/work/repo/docs/a.md")} ${win32.normalize("a/b/../c")}`;
}

await joinSession({ tools: [{ name: "check_path", description: "Checks node:path", handler: check }] });
