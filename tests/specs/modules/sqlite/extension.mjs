// node:sqlite, which has no name without the prefix: rows go into a database file and come back, types and constraints included.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { joinSession } from "@github/copilot-sdk/extension";

function check() {
  const folder = mkdtempSync(join(tmpdir(), "tenon-sqlite-"));
  try {
    const file = join(folder, "notes.db");
    const titles = writes(file);
    reads(file);
    inMemory();
    return titles;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function writes(file) {
  const db = new DatabaseSync(file);
  db.exec("CREATE TABLE note (id INTEGER PRIMARY KEY, title TEXT NOT NULL UNIQUE, score REAL, data BLOB)");
  const insert = db.prepare("INSERT INTO note (title, score, data) VALUES (?, ?, ?)");
  assert.deepEqual({ ...insert.run("first", 1.5, new Uint8Array([1, 2])) }, { changes: 1, lastInsertRowid: 1 });
  assert.equal(insert.run("second", null, null).lastInsertRowid, 2);
  const named = db.prepare("INSERT INTO note (title, score) VALUES ($title, :score)");
  named.run({ $title: "Robert'); DROP TABLE note;--", ":score": 3 });

  assert.throws(() => insert.run("first", 0, null), { code: "ERR_SQLITE_ERROR", message: /UNIQUE constraint failed/ });
  assert.throws(() => db.prepare("SELEC 1"), { message: /syntax error/ });

  db.exec("BEGIN");
  db.exec("DELETE FROM note");
  db.exec("ROLLBACK");
  assert.equal(db.prepare("SELECT count(*) AS n FROM note").get().n, 3);
  const titles = db.prepare("SELECT title FROM note WHERE id < ? ORDER BY id").all(3).map((row) => row.title);
  db.close();
  assert.equal(db.isOpen, false);
  return titles.join(", ");
}

function reads(file) {
  const db = new DatabaseSync(file, { readOnly: true });
  const row = db.prepare("SELECT * FROM note WHERE title = ?").get("first");
  assert.deepEqual({ ...row }, { id: 1, title: "first", score: 1.5, data: new Uint8Array([1, 2]) });
  assert.equal(db.prepare("SELECT * FROM note WHERE id = 99").get(), undefined);
  assert.throws(() => db.exec("DELETE FROM note"), /readonly/);
  const ids = [];
  for (const { id } of db.prepare("SELECT id FROM note ORDER BY id DESC").iterate()) ids.push(id);
  assert.deepEqual(ids, [3, 2, 1]);
  db.close();
}

function inMemory() {
  const db = new DatabaseSync(":memory:");
  db.function("shout", (text) => `${text}!`);
  assert.equal(db.prepare("SELECT shout('hey') AS text").get().text, "hey!");
  const big = db.prepare("SELECT 9007199254740993 AS big");
  big.setReadBigInts(true);
  assert.equal(big.get().big, 9007199254740993n);
  db.exec("CREATE VIRTUAL TABLE texts USING fts5(body)");
  db.prepare("INSERT INTO texts VALUES (?), (?)").run("the quick fox", "a slow snail");
  assert.deepEqual(db.prepare("SELECT body FROM texts WHERE texts MATCH 'fox'").all().map((row) => row.body), ["the quick fox"]);
  assert.equal(db.prepare("SELECT json_extract('{\"a\":[1,2]}', '$.a[1]') AS two").get().two, 2);
  db.close();
}

await joinSession({ tools: [{ name: "check_sqlite", description: "Checks node:sqlite", handler: check }] });
