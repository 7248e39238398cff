// notes: things worth remembering, kept across sessions in a SQLite file. Shows node:sqlite and
// state that survives a reload (memory does not: every reload starts the module afresh).
//
// The file is notes.db beside this module, or what the environment variable NOTES_DB names.
// Try it:  tenon call add_note --args '{"text":"The staging server is called heron","tag":"ops"}'

import { mkdirSync } from "node:fs";
import path from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { joinSession } from "@github/copilot-sdk/extension";

const MAX_TEXT = 4_000;
const MAX_LISTED = 200;

// import.meta.url and not process.cwd(): the store belongs to the extension, wherever the session runs.
const ownFolder = path.dirname(fileURLToPath(import.meta.url));
const file = process.env.NOTES_DB ? path.resolve(process.env.NOTES_DB) : path.join(ownFolder, "notes.db");
mkdirSync(path.dirname(file), { recursive: true });

const db = new DatabaseSync(file);
// Two sessions, or the old and the new generation during a reload, may have the file open at
// once: wait for the other one's write instead of failing.
db.exec("PRAGMA busy_timeout = 3000");
db.exec(`
  CREATE TABLE IF NOT EXISTS notes (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    text    TEXT NOT NULL,
    tag     TEXT NOT NULL DEFAULT '',
    created TEXT NOT NULL
  )
`);

// Values are always bound, never pasted into the SQL: they come from a model.
const insert = db.prepare("INSERT INTO notes (text, tag, created) VALUES (?, ?, ?)");
const select = db.prepare(`
  SELECT id, text, tag, created FROM notes
  WHERE (?1 = '' OR tag = ?1) AND (?2 = '' OR instr(lower(text), lower(?2)) > 0)
  ORDER BY id DESC LIMIT ?3
`);

/** @param {string} text */
function failure(text) {
  return { textResultForLlm: text, resultType: "failure" };
}

/** @param {unknown} value */
const asText = (value) => (typeof value === "string" ? value.trim() : "");

await joinSession({
  tools: [
    {
      name: "add_note",
      description: "Saves a note about this project that should be remembered in later sessions.",
      parameters: {
        type: "object",
        properties: {
          text: { type: "string", description: `The note, at most ${MAX_TEXT} characters` },
          tag: { type: "string", description: "One word to group notes by" },
        },
        required: ["text"],
      },
      handler: async (args) => {
        const text = asText(args?.text);
        if (!text) return failure('add_note needs a non-empty "text".');
        if (text.length > MAX_TEXT) return failure(`The note has ${text.length} characters, at most ${MAX_TEXT} fit.`);
        const { lastInsertRowid } = insert.run(text, asText(args.tag), new Date().toISOString());
        return `Saved note ${lastInsertRowid}.`;
      },
    },
    {
      name: "list_notes",
      description: "Lists saved notes, newest first, filtered by tag or by a word in the text.",
      parameters: {
        type: "object",
        properties: {
          tag: { type: "string", description: "Only notes with this tag" },
          query: { type: "string", description: "Only notes that contain this text" },
          limit: { type: "integer", description: "At most this many (default 20)" },
        },
      },
      handler: async (args) => {
        const limit = Math.min(Math.max(Math.trunc(Number(args?.limit)) || 20, 1), MAX_LISTED);
        const rows = select.all(asText(args?.tag), asText(args?.query), limit);
        if (rows.length === 0) return "No notes found.";
        return rows
          .map(({ id, text, tag, created }) => `#${id} ${String(created).slice(0, 10)}${tag ? ` [${tag}]` : ""} ${text}`)
          .join("\n");
      },
    },
  ],
});

// "exit" handlers are synchronous, and so is closing the database: nothing is left half written.
process.on("exit", () => db.close());
// Node ends a process on SIGTERM without running "exit" handlers, unless somebody calls exit.
process.on("SIGTERM", () => process.exit(0));
