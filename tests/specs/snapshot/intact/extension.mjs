// A function in a snapshot whose source text was lost would read a neighbour's, and fail to compile
// at its first call. So every function that can be reached from a node module must have a source
// text that parses, and that text must be its own.

import { joinSession } from "@github/copilot-sdk/extension";
import { builtinModules } from "node:module";
import { Script } from "node:vm";

const NATIVE = /\{\s*\[native code\]\s*\}\s*$/;

/** A function's text is an expression, a method or an accessor; one of these must parse. */
function parses(text) {
  const privates = new Set(text.match(/#[\w$]+/g));
  const fields = [...privates].map((name) => `${name};`).join(" ");
  const method = text.replace(/^((?:static |async |get |set |\*)*)#/, "$1");
  const shapes = [
    `(${text})`,
    `({ ${text} })`,
    `(class extends Object { ${fields} ${method} })`,
    `(class extends Object { ${fields} static ${method} })`,
  ];
  return shapes.some((source) => {
    try {
      new Script(source);
      return true;
    } catch {
      return false;
    }
  });
}

function* functionsOf(root, path) {
  const queue = [[root, path, 0]];
  const seen = new Set();
  while (queue.length > 0) {
    const [value, where, depth] = queue.pop();
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
    seen.add(value);
    if (typeof value === "function") yield [value, where];
    if (depth === 3) continue;
    for (const key of Reflect.ownKeys(value)) {
      const property = Object.getOwnPropertyDescriptor(value, key);
      for (const part of ["value", "get", "set"]) {
        if (property?.[part]) queue.push([property[part], `${where}.${String(key)}`, depth + 1]);
      }
    }
  }
}

await joinSession({
  tools: [{
    name: "functions_intact",
    description: "Checks the source text of every function of every node module",
    handler: async () => {
      const checked = new Set();
      const broken = [];
      for (const name of builtinModules) {
        // These start something when they are imported, or exist only under a flag.
        const bare = name.replace(/^node:/, "");
        if (/^(_|repl|test|inspector|cluster|trace_events|wasi)/.test(bare)) continue;
        const module = await import(`node:${bare}`);
        for (const [fn, where] of functionsOf(module, name)) {
          if (checked.has(fn)) continue;
          checked.add(fn);
          const text = Function.prototype.toString.call(fn);
          if (!NATIVE.test(text) && !parses(text)) broken.push(`${where}: ${text.slice(0, 80)}`);
        }
      }
      if (broken.length > 0) throw new Error(`${broken.length} broken:\n${broken.slice(0, 20).join("\n")}`);
      return `${checked.size} functions are intact`;
    },
  }],
});
