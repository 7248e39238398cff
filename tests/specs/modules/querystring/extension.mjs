// node:querystring: parses and writes query strings, by its own rules and not those of URL.

import assert from "node:assert/strict";
import * as prefixed from "node:querystring";
import * as bare from "querystring";
import { joinSession } from "@github/copilot-sdk/extension";

function check() {
  assert.equal(bare, prefixed);
  const querystring = prefixed.default;

  const parsed = querystring.parse("a=1&b=x+y&a=2&c=%E2%82%AC&d&=e&f=%zz");
  assert.equal(Object.getPrototypeOf(parsed), null);
  assert.deepEqual({ ...parsed }, { a: ["1", "2"], b: "x y", c: "€", d: "", "": "e", f: "%zz" });
  assert.deepEqual({ ...querystring.parse("a:1;b:2", ";", ":") }, { a: "1", b: "2" });
  assert.deepEqual({ ...querystring.parse("a=1&b=2&c=3", null, null, { maxKeys: 2 }) }, { a: "1", b: "2" });

  const text = querystring.stringify({ q: "a b&c", list: [1, 2], ok: true, none: undefined, n: NaN, big: 5n });
  assert.equal(text, "q=a%20b%26c&list=1&list=2&ok=true&none=&n=&big=5");
  assert.equal(querystring.stringify({ a: 1, b: "ü" }, ";", ":"), "a:1;b:%C3%BC");
  assert.equal(querystring.escape("!'()*~-._ ä/"), "!'()*~-._%20%C3%A4%2F");
  assert.equal(querystring.unescape("%41%zz"), "A%zz");
  assert.equal(querystring.encode, querystring.stringify);
  assert.equal(querystring.decode, querystring.parse);
  assert.throws(() => querystring.escape("\ud800"), { code: "ERR_INVALID_URI" });
  return text;
}

await joinSession({ tools: [{ name: "check_querystring", description: "Checks node:querystring", handler: check }] });
