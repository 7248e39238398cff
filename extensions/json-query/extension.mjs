// json-query: one value out of a JSON file, by a dotted path. Saves the agent from reading a whole
// package-lock.json for one version number.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { joinSession } from "@github/copilot-sdk/extension";

const MAX_RESULT_CHARS = 20_000;
const MAX_KEYS_SHOWN = 20;

/** @param {string} text */
const failure = (text) => ({ textResultForLlm: text, resultType: "failure" });

// "a.b[0].c" and "a.b.0.c" are the same path; a backslash keeps a dot or bracket in a key: "a\.b".
/** @param {string} text */
function parsePath(text) {
  /** @type {string[]} */
  const keys = [];
  let key = "";
  let open = false; // something was read that belongs to the current key
  const push = () => {
    if (open) keys.push(key);
    key = "";
    open = false;
  };
  for (let i = 0; i < text.length; i += 1) {
    const char = text[i];
    if (char === "." || char === "[" || char === "]") {
      push();
    } else {
      key += char === "\\" && i + 1 < text.length ? text[(i += 1)] : char;
      open = true;
    }
  }
  push();
  return keys;
}

// What can be asked for instead, so that a wrong guess is followed by a right one.
/** @param {any} value */
function describe(value) {
  if (Array.isArray(value)) return value.length === 0 ? "is an empty array" : `is an array with indexes 0 to ${value.length - 1}`;
  if (value === null || typeof value !== "object") return `is ${value === null ? "null" : `a ${typeof value}`}`;
  const keys = Object.keys(value);
  const more = keys.length > MAX_KEYS_SHOWN ? `, and ${keys.length - MAX_KEYS_SHOWN} more` : "";
  return keys.length === 0 ? "is an empty object" : `has the keys ${keys.slice(0, MAX_KEYS_SHOWN).join(", ")}${more}`;
}

/** @param {any} root @param {string[]} keys */
function lookUp(root, keys) {
  let value = root;
  for (const [index, key] of keys.entries()) {
    // Own properties only: "length" of an array or "constructor" of an object are not in the file.
    const isIndex = Array.isArray(value) && /^\d+$/.test(key) && Number(key) < value.length;
    const isKey = value !== null && typeof value === "object" && !Array.isArray(value) && Object.hasOwn(value, key);
    if (!isIndex && !isKey) {
      const reached = index === 0 ? "the top level" : `"${keys.slice(0, index).join(".")}"`;
      return { problem: `No "${key}" there: ${reached} ${describe(value)}.` };
    }
    value = value[key];
  }
  return { value };
}

/** @type {import("@github/copilot-sdk").ToolHandler} */
async function jsonQuery(args) {
  if (typeof args?.file !== "string" || args.file === "") return failure('json_query needs a "file".');
  if (args.path !== undefined && typeof args.path !== "string") return failure('"path" must be a string.');

  let text;
  try {
    text = await readFile(path.resolve(process.cwd(), args.file), "utf8");
  } catch (/** @type {any} */ error) {
    return failure(`Cannot read ${args.file}: ${error.code === "ENOENT" ? "there is no such file" : error.message}`);
  }
  let root;
  try {
    root = JSON.parse(text.replace(/^\uFEFF/, "")); // some editors write a byte order mark
  } catch (/** @type {any} */ error) {
    return failure(`${args.file} is not valid JSON: ${error.message}`);
  }

  const { value, problem } = lookUp(root, parsePath(args.path ?? ""));
  if (problem) return failure(problem);
  const result = JSON.stringify(value, null, 2);
  if (result.length > MAX_RESULT_CHARS) {
    return failure(`The value has ${result.length} characters of JSON; ask for a part of it. It ${describe(value)}.`);
  }
  return result;
}

await joinSession({
  tools: [
    {
      name: "json_query",
      description: "Reads a JSON file and returns the value at a dotted path, for example dependencies.zod or items[0].name.",
      parameters: {
        type: "object",
        properties: {
          file: { type: "string", description: "JSON file, relative to the workspace" },
          path: { type: "string", description: 'Dotted path; "" or left out for the whole file; "\\\\." for a dot inside a key' },
        },
        required: ["file"],
      },
      handler: jsonQuery,
    },
  ],
});
