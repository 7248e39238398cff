// The page, in one piece: no file or address besides its own event stream. All texts come from the
// session and reach the document as text nodes only, never as markup.

/** @param {string} nonce */
export const page = (nonce) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Session board</title>
<style nonce="${nonce}">
  :root { color-scheme: light dark; --back: #fff; --text: #1c2024; --soft: #5b6470; --line: #d5dae0; --accent: #0b57c2; --bad: #b3261e }
  @media (prefers-color-scheme: dark) { :root { --back: #15181c; --text: #e6e9ed; --soft: #a3adb8; --line: #343b44; --accent: #8ab8ff; --bad: #ff9a91 } }
  * { box-sizing: border-box } [hidden] { display: none !important }
  body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 70rem; padding: 1rem; color: var(--text); background: var(--back) }
  h1 { font-size: 1.2rem; margin: 0 } h2 { font-size: 1rem; margin: 1.5rem 0 .5rem }
  header { display: flex; flex-wrap: wrap; gap: .25rem 1rem; align-items: baseline; border-bottom: 1px solid var(--line); padding-bottom: .75rem }
  #activity { font-weight: 600; color: var(--accent) } #link { color: var(--soft) } #link.lost, .failed { color: var(--bad) }
  dl { display: flex; flex-wrap: wrap; gap: .5rem 2rem; margin: 0 } dt { color: var(--soft); font-size: .85rem } dd { margin: 0; font-variant-numeric: tabular-nums; font-size: 1.1rem }
  .scroll { overflow-x: auto } table { border-collapse: collapse; width: 100% } caption { text-align: left; color: var(--soft); padding-bottom: .25rem }
  th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums } th:first-child, td:first-child { text-align: left; overflow-wrap: anywhere }
  form { display: flex; gap: .75rem; align-items: center; flex-wrap: wrap } input[type=search] { font: inherit; padding: .25rem .5rem; min-width: 14rem }
  ol { list-style: none; margin: .5rem 0 0; padding: 0; height: 28rem; overflow-y: auto; border: 1px solid var(--line) }
  ol:focus-visible { outline: 2px solid var(--accent) }
  li { display: grid; grid-template-columns: 6rem minmax(9rem, 15rem) 1fr; gap: .75rem; padding: .2rem .5rem; border-bottom: 1px solid var(--line) }
  li time, li .type { color: var(--soft) } li .text { overflow-wrap: anywhere } li.failed .type { color: var(--bad) }
  @media (max-width: 40rem) { li { grid-template-columns: 1fr } }
</style>
</head>
<body>
<header><h1>Session board</h1><span id="activity" role="status">Connecting</span><span id="link" role="status"></span></header>
<main>
<h2>Totals</h2><dl id="totals"></dl>
<h2>Tools</h2>
<div class="scroll"><table><caption>Calls of each tool</caption>
<thead><tr><th scope="col">Tool</th><th scope="col">Calls</th><th scope="col">Running</th><th scope="col">Failed</th><th scope="col">Average</th><th scope="col">Longest</th></tr></thead><tbody id="tools"></tbody></table></div>
<h2>Models</h2>
<div class="scroll"><table><caption>Requests to each model</caption>
<thead><tr><th scope="col">Model</th><th scope="col">Requests</th><th scope="col">Tokens in</th><th scope="col">Tokens out</th><th scope="col">Cost</th></tr></thead><tbody id="models"></tbody></table></div>
<h2 id="timeline-title">Timeline</h2>
<form id="controls"><label>Filter <input id="filter" type="search" autocomplete="off"></label><label><input id="follow" type="checkbox" checked> Follow</label><span id="shown"></span></form>
<ol id="timeline" tabindex="0" aria-labelledby="timeline-title"></ol>
</main>
<script nonce="${nonce}">
  "use strict";
  const LIMIT = 500;
  const at = (id) => document.getElementById(id);
  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = String(text);
    if (className) element.className = className;
    return element;
  };
  const count = (value) => Number(value).toLocaleString();
  const time = (ms) => (ms < 1000 ? ms + " ms" : (ms / 1000).toFixed(1) + " s");
  const cost = (value) => Number(value).toFixed(2);
  const rows = (id, list, cells) => at(id).replaceChildren(...list.map((item) => {
    const row = make("tr");
    cells(item).forEach((text, index) => {
      const cell = make(index === 0 ? "th" : "td", text);
      if (index === 0) cell.scope = "row";
      row.append(cell);
    });
    return row;
  }));

  function showCounters(c) {
    if (at("activity").textContent !== c.activity) at("activity").textContent = c.activity;
    document.title = c.activity + " - Session board";
    const totals = [["Prompts", count(c.prompts)], ["Requests", count(c.requests)], ["Tokens in", count(c.tokens.input)], ["Tokens out", count(c.tokens.output)],
      ["From cache", count(c.tokens.cacheRead)], ["Cost", cost(c.cost)], ["Errors", count(c.errors)]];
    if (c.context) totals.push(["Context", count(c.context.used) + (c.context.limit ? " of " + count(c.context.limit) + " (" + Math.round((100 * c.context.used) / c.context.limit) + " %)" : "")]);
    at("totals").replaceChildren(...totals.map(([name, value]) => {
      const group = make("div");
      group.append(make("dt", name), make("dd", value));
      return group;
    }));
    rows("tools", c.tools, (t) => [t.name, count(t.calls), count(t.running), count(t.failures), time(t.averageMs), time(t.maxMs)]);
    rows("models", c.models, (m) => [m.name, count(m.requests), count(m.input), count(m.output), cost(m.cost)]);
  }

  const wanted = (item) => item.textContent.toLowerCase().includes(at("filter").value.trim().toLowerCase());
  function filter() {
    let shown = 0;
    for (const item of at("timeline").children) {
      item.hidden = !wanted(item);
      if (!item.hidden) shown += 1;
    }
    at("shown").textContent = shown + " of " + at("timeline").children.length + " events";
  }
  function append(entries) {
    const list = at("timeline");
    for (const entry of entries) {
      const item = make("li", undefined, entry.failed ? "failed" : "");
      const when = new Date(entry.time);
      const stamp = make("time", when.toLocaleTimeString());
      stamp.dateTime = when.toISOString();
      item.append(stamp, make("span", entry.type + (entry.agent ? " (sub-agent)" : ""), "type"), make("span", entry.text, "text"));
      list.append(item);
    }
    while (list.children.length > LIMIT) list.firstChild.remove();
    filter();
    if (at("follow").checked) list.scrollTop = list.scrollHeight;
  }

  at("filter").addEventListener("input", filter);
  at("controls").addEventListener("submit", (event) => event.preventDefault());
  const source = new EventSource("events"); // comes back by itself after an interruption
  source.addEventListener("open", () => { at("link").textContent = ""; at("link").className = ""; });
  source.addEventListener("error", () => { at("link").textContent = "Connection lost"; at("link").className = "lost"; });
  source.addEventListener("all", ({ data }) => {
    const { counters, entries } = JSON.parse(data);
    at("timeline").replaceChildren();
    showCounters(counters);
    append(entries);
  });
  source.addEventListener("news", ({ data }) => {
    const { counters, entries } = JSON.parse(data);
    showCounters(counters);
    append(entries);
  });
  source.addEventListener("bye", () => { source.close(); at("link").textContent = "Closed"; });
</script>
</body>
</html>
`;
