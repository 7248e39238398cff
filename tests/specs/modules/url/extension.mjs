// node:url: file URLs, the classes that are also globals, and the older parser.

import { readFileSync } from "node:fs";
import * as prefixed from "node:url";
import * as bare from "url";
import { joinSession } from "@github/copilot-sdk/extension";

function same(what, actual, expected) {
  const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== b) throw new Error(`${what} is ${a}, not ${b}`);
}

function check() {
  same("url is node:url", bare === prefixed && bare.default === prefixed.default, true);
  const url = prefixed.default;
  const { URL, URLSearchParams, fileURLToPath, pathToFileURL } = prefixed;
  same("the classes are the globals", URL === globalThis.URL && URLSearchParams === globalThis.URLSearchParams, true);

  const odd = "/tmp/100% of #1?/ünï code\\.txt";
  const asUrl = pathToFileURL(odd);
  same("a path as URL", asUrl.href, "file:///tmp/100%25%20of%20%231%3F/%C3%BCn%C3%AF%20code%5C.txt");
  same("the URL as path", fileURLToPath(asUrl), odd);
  same("a trailing slash", pathToFileURL("/a/b/").href, "file:///a/b/");
  same("this file, read by its URL", readFileSync(fileURLToPath(import.meta.url), "utf8").startsWith("// node:url:"), true);
  const refused = ["http://a/b", "file:///a%2Fb", "file://host/a"].map((text) => {
    try {
      return fileURLToPath(text);
    } catch (error) {
      return error.code;
    }
  });
  same("URLs that are no path", refused, ["ERR_INVALID_URL_SCHEME", "ERR_INVALID_FILE_URL_PATH", "ERR_INVALID_FILE_URL_HOST"]);

  const old = url.parse("https://me:pw@example.com:8080/p/a?x=1&y=2#h", true);
  same("url.parse", [old.protocol, old.auth, old.host, old.port, old.pathname, old.hash, old.query.y], [
    "https:", "me:pw", "example.com:8080", "8080", "/p/a", "#h", "2",
  ]);
  same("url.format", url.format({ protocol: "http", host: "a.b", pathname: "/c", query: { d: "e f" } }), "http://a.b/c?d=e%20f");
  same("url.format of a URL", url.format(new URL("http://u:p@ä.de/#x"), { auth: false, fragment: false, unicode: true }), "http://ä.de/");
  same("url.resolve", url.resolve("http://a.b/c/d", "../e"), "http://a.b/e");
  same("punycode", [url.domainToASCII("español.com"), url.domainToUnicode("xn--espaol-zwa.com")], ["xn--espaol-zwa.com", "español.com"]);
  const options = url.urlToHttpOptions(new URL("https://u:p@example.com:1/x?y"));
  same("urlToHttpOptions", [options.hostname, options.port, options.path, options.auth], ["example.com", 1, "/x?y", "u:p"]);

  return `${asUrl.protocol} ${new URL("../b?c=1", "http://h/a/a/").searchParams.get("c")} ${url.resolve("/one/two", "three")}`;
}

await joinSession({ tools: [{ name: "check_url", description: "Checks node:url", handler: check }] });
