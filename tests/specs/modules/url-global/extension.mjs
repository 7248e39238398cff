// URL and URLSearchParams as globals: parts, relative references, object URLs.

import assert from "node:assert/strict";
import { joinSession } from "@github/copilot-sdk/extension";

async function check() {
  const url = new URL("../d/./e?x=1&x=2#f", "https://me:pw@EXAMPLE.com:8443/a/b/c");
  assert.equal(url.href, "https://me:pw@example.com:8443/a/d/e?x=1&x=2#f");
  assert.deepEqual([url.origin, url.host, url.port, url.username, url.password, url.pathname, url.search, url.hash], [
    "https://example.com:8443", "example.com:8443", "8443", "me", "pw", "/a/d/e", "?x=1&x=2", "#f",
  ]);
  url.searchParams.append("y", "a b&ü");
  url.port = "443";
  url.pathname = "/ü x";
  url.hash = "";
  url.username = url.password = "";
  assert.equal(url.href, "https://example.com/%C3%BC%20x?x=1&x=2&y=a+b%26%C3%BC");
  assert.deepEqual(url.searchParams.getAll("x"), ["1", "2"]);
  assert.equal(JSON.stringify({ url: new URL("http://a") }), '{"url":"http://a/"}');

  const params = new URLSearchParams([["b", "2"], ["a", "1"], ["b", "1"]]);
  params.sort();
  assert.equal(params.toString(), "a=1&b=2&b=1");
  params.delete("b", "2");
  assert.deepEqual([[...params], params.size, params.has("b", "1"), params.get("none")], [[["a", "1"], ["b", "1"]], 2, true, null]);

  assert.equal(new URL("http://münchen.de/").hostname, "xn--mnchen-3ya.de");
  assert.equal(new URL("http://0x7f.1/").hostname, "127.0.0.1");
  assert.equal(new URL("http://[::0001]/").hostname, "[::1]");
  assert.deepEqual([URL.canParse("x:y"), URL.canParse("/only/a/path"), URL.parse("nonsense")], [true, false, null]);
  assert.throws(() => new URL("http://a b/"), TypeError);

  const object = URL.createObjectURL(new Blob(["from a blob"], { type: "text/plain" }));
  assert.match(object, /^blob:/);
  assert.equal(await (await fetch(object)).text(), "from a blob");
  URL.revokeObjectURL(object);
  await assert.rejects(fetch(object), TypeError);

  const pattern = new URLPattern({ pathname: "/users/:id" });
  assert.equal(pattern.exec("https://a.b/users/42").pathname.groups.id, "42");
  assert.equal(pattern.test("https://a.b/posts/42"), false);
  return url.href;
}

await joinSession({ tools: [{ name: "check_url_global", description: "Checks URL", handler: check }] });
