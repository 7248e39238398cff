// word-count: lines, words and bytes of a file in the workspace, as `wc` counts them. Files only:
// it works with the tightest grant that can read the workspace (no network, no processes).

import { open, realpath } from "node:fs/promises";
import path from "node:path";
import { joinSession } from "@github/copilot-sdk/extension";

const CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;

/** @param {string} text */
const failure = (text) => ({ textResultForLlm: text, resultType: "failure" });

// Space, tab, newline, vertical tab, form feed, carriage return.
/** @param {number} byte */
const isSpace = (byte) => byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);

// Resolves a path the model gave to a real one inside the workspace. Links are followed before
// the check, so a link that leads out of the workspace is refused like "../" is.
/** @param {string} given */
async function insideWorkspace(given) {
  const root = await realpath(process.cwd());
  const target = await realpath(path.resolve(root, given));
  const relative = path.relative(root, target);
  if (relative === ".." || relative.startsWith(`..${path.sep}`) || path.isAbsolute(relative)) {
    throw new Error("it is outside the workspace");
  }
  return target;
}

// Counts bytes, not characters, in fixed chunks: any encoding and any size of file will do.
/** @param {string} file */
async function count(file) {
  const handle = await open(file, "r");
  try {
    if (!(await handle.stat()).isFile()) throw new Error("it is not a regular file");
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let lines = 0;
    let words = 0;
    let bytes = 0;
    let inWord = false; // carried over chunk borders
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, null);
      if (bytesRead === 0) return { lines, words, bytes };
      bytes += bytesRead;
      for (let i = 0; i < bytesRead; i += 1) {
        const byte = buffer[i];
        if (byte === NEWLINE) lines += 1;
        const space = isSpace(byte);
        if (!space && !inWord) words += 1;
        inWord = !space;
      }
    }
  } finally {
    await handle.close();
  }
}

await joinSession({
  tools: [
    {
      name: "word_count",
      description: "Counts the lines, words and bytes of a file in the workspace.",
      parameters: {
        type: "object",
        properties: { path: { type: "string", description: "File, relative to the workspace" } },
        required: ["path"],
      },
      handler: async (args) => {
        if (typeof args?.path !== "string" || args.path === "") return failure('word_count needs a "path".');
        try {
          const { lines, words, bytes } = await count(await insideWorkspace(args.path));
          return `${args.path}: ${lines} lines, ${words} words, ${bytes} bytes`;
        } catch (/** @type {any} */ error) {
          const reason = error.code === "ENOENT" ? "there is no such file" : error.message;
          return failure(`Cannot count ${args.path}: ${reason}`);
        }
      },
    },
  ],
});
