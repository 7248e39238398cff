// fetch-page: reads a web page and returns its text. Shows fetch with a deadline and the call's
// own signal joined, a body that is read only up to a cap, and turning HTML into readable text.
//
// Try it:  tenon call fetch_page --args '{"url":"https://example.com"}'

import { joinSession } from "@github/copilot-sdk/extension";

const TIMEOUT_MS = 20_000;
const MAX_BYTES = 2 * 1024 * 1024; // read from the network
const DEFAULT_CHARS = 12_000; // given to the model
const MAX_CHARS = 60_000;

/** @type {Record<string, string>} */
const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: " ", copy: "©", hellip: "…", mdash: "—", ndash: "–" };

/** @param {string} text */
function decodeEntities(text) {
  return text.replace(/&(?:#(\d{1,7})|#x([0-9a-f]{1,6})|([a-z]+));/gi, (whole, decimal, hex, name) => {
    if (name) return ENTITIES[name.toLowerCase()] ?? whole;
    const code = decimal ? Number(decimal) : parseInt(hex, 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
  });
}

// Good enough for reading; a parser would be the wrong size for an example. Entities come last,
// so that an escaped "&lt;b&gt;" in the page stays text and is not taken for a tag.
/** @param {string} html */
function htmlToText(html) {
  const title = /<title[^>]*>([^<]*)/i.exec(html)?.[1] ?? "";
  const text = html
    .replace(/<!--[\s\S]*?-->/g, "")
    .replace(/<(script|style|noscript|template|svg|head)\b[\s\S]*?<\/\1\s*>/gi, "")
    .replace(/\s+/g, " ")
    .replace(/<li\b[^>]*>/gi, "\n- ")
    .replace(/<(?:br|hr|\/?(?:p|div|section|article|header|footer|main|nav|h[1-6]|ul|ol|table|tr|pre|blockquote))\b[^>]*>/gi, "\n")
    .replace(/<\/t[dh]>/gi, " ")
    .replace(/<[^>]*>/g, "");
  return {
    title: decodeEntities(title).replace(/\s+/g, " ").trim(),
    text: decodeEntities(text).replace(/[ \t]+/g, " ").replace(/ ?\n ?/g, "\n").replace(/\n{3,}/g, "\n\n").trim(),
  };
}

// A server decides how much it sends; this decides how much is read. Leaving the loop early
// cancels the body, so the rest is not downloaded.
/** @param {Response} response */
async function readCapped(response) {
  const chunks = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    chunks.push(chunk);
    size += chunk.byteLength;
    if (size >= MAX_BYTES) break;
  }
  return { bytes: Buffer.concat(chunks).subarray(0, MAX_BYTES), cut: size >= MAX_BYTES };
}

/** @param {string} contentType */
function decoderFor(contentType) {
  const charset = /charset="?([\w-]+)/i.exec(contentType)?.[1] ?? "utf-8";
  try {
    return new TextDecoder(charset);
  } catch {
    return new TextDecoder(); // a label nobody knows
  }
}

/** @type {import("@github/copilot-sdk").ToolHandler} */
async function fetchPage(args, invocation) {
  /** @param {string} text */
  const fail = (text, resultType = "failure") => ({ textResultForLlm: text, resultType });
  if (!URL.canParse(args?.url ?? "")) return fail(`Not an absolute URL: ${JSON.stringify(args?.url)}`);
  const url = new URL(args.url);
  // file: and data: would read past what "fetch a page" promises to the person who approves it.
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return fail(`Only http and https URLs can be fetched, not ${url.protocol}`);
  }
  const limit = Math.min(Math.max(Number(args.max_chars) || DEFAULT_CHARS, 1), MAX_CHARS);

  // Two reasons to stop: the deadline, and the host cancelling this call.
  const deadline = AbortSignal.timeout(TIMEOUT_MS);
  const signal = invocation?.signal ? AbortSignal.any([deadline, invocation.signal]) : deadline;
  try {
    const response = await fetch(url, { signal, headers: { accept: "text/html, text/*, application/json" } });
    const type = response.headers.get("content-type") ?? "text/plain";
    if (!/^text\/|json|xml|javascript/i.test(type)) {
      await response.body?.cancel();
      return fail(`${url} is ${type}, which is not text.`);
    }
    const { bytes, cut } = await readCapped(response);
    const raw = decoderFor(type).decode(bytes);
    const { title, text } = /html/i.test(type) ? htmlToText(raw) : { title: "", text: raw };

    const head = [`URL: ${response.url || url}`, `Status: ${response.status}`, `Type: ${type}`];
    if (title) head.push(`Title: ${title}`);
    if (cut || text.length > limit) head.push(`Note: cut to the first ${Math.min(limit, text.length)} characters`);
    const result = `${head.join("\n")}\n\n${text.slice(0, limit)}`;
    return response.ok ? result : fail(result);
  } catch (/** @type {any} */ error) {
    if (invocation?.signal?.aborted) return fail("The fetch was cancelled.");
    if (deadline.aborted) return fail(`${url} did not answer within ${TIMEOUT_MS / 1000} s.`, "timeout");
    // fetch hides the network's own words ("connection refused") in error.cause.
    return fail(`Could not fetch ${url}: ${error.cause?.message || error.message}`);
  }
}

await joinSession({
  tools: [
    {
      name: "fetch_page",
      description: "Fetches a web page (http or https) and returns its readable text, title and status.",
      parameters: {
        type: "object",
        properties: {
          url: { type: "string", description: "Absolute URL of the page" },
          max_chars: { type: "integer", description: `Cut the text after this many characters (default ${DEFAULT_CHARS})` },
        },
        required: ["url"],
      },
      handler: fetchPage,
    },
  ],
});
