// A model that follows a script, for agents that should be tested without one.
//
// It speaks the wire formats that coding agents use: Anthropic messages, OpenAI chat completions and responses,
// Gemini generateContent; streaming and not. It remembers nothing. A prompt that contains `(scene: NAME)` begins the
// scene of that name, and how many tool results follow the prompt says which step is next. So it does not matter
// that agents ask the same twice, in parallel, or for titles and suggestions in between.
//
// A step is one of
//   { call: "shell", args: { ... } }    calls the tool whose name is "shell" or ends with it, as "mcp__x__shell" does
//   { say: "text" }                     ends the turn; "$last" in it is the last tool result
// What fits no scene is answered with a short text.
//
// As a program: node model.mjs SCENES.json [PORT] [LOG]

import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";
import { brotliDecompressSync, gunzipSync, inflateSync } from "node:zlib";

/** What is said when there is nothing in the script. */
const NOTHING = "OK.";

/** The longest text that is logged or put in place of `$last`, in characters. */
const MAX_TEXT = 2000;

const id = (prefix) => prefix + randomUUID().replaceAll("-", "").slice(0, 20);

/** The text of a message or of a tool result, in whichever shape. */
function textOf(content) {
  if (typeof content === "string") return content;
  if (Array.isArray(content)) return content.map(textOf).join("\n");
  if (content && typeof content === "object") {
    for (const name of ["text", "content", "output"]) if (name in content) return textOf(content[name]);
    return JSON.stringify(content);
  }
  return content == null ? "" : String(content);
}

// Each format says how to read a request: which tools are offered (name, and what else it takes to call one), and
// what was said, in order ("user" texts and tool "result"s; the rest does not matter); and how to answer.

const anthropic = {
  matches: (path) => path.endsWith("/messages"),
  streams: (body) => body.stream === true,
  tools: (body) => (body.tools ?? []).map((tool) => ({ name: tool.name })),
  history: (body) =>
    (body.messages ?? [])
      .filter((message) => message.role === "user")
      .flatMap((message) => (typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content))
      .map((part) =>
        part.type === "tool_result" ? { result: textOf(part.content) } : { user: textOf(part.text) },
      ),
  answer(body, { tool, args, text }) {
    const usage = { input_tokens: 10, output_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
    const block = tool ? { type: "tool_use", id: id("toolu_"), name: tool.name, input: args } : { type: "text", text };
    const stop = { stop_reason: tool ? "tool_use" : "end_turn", stop_sequence: null };
    const message = { id: id("msg_"), type: "message", role: "assistant", model: body.model, content: [block], ...stop, usage };
    const empty = tool ? { ...block, input: {} } : { type: "text", text: "" };
    const delta = tool
      ? { type: "input_json_delta", partial_json: JSON.stringify(args) }
      : { type: "text_delta", text };
    const events = [
      { type: "message_start", message: { ...message, content: [], stop_reason: null } },
      { type: "content_block_start", index: 0, content_block: empty },
      { type: "content_block_delta", index: 0, delta },
      { type: "content_block_stop", index: 0 },
      { type: "message_delta", delta: stop, usage },
      { type: "message_stop" },
    ];
    return { whole: message, events: events.map((data) => ({ event: data.type, data })) };
  },
};

const chat = {
  matches: (path) => path.endsWith("/chat/completions"),
  streams: (body) => body.stream === true,
  tools: (body) => (body.tools ?? []).map((tool) => ({ name: tool.function?.name ?? tool.name ?? "" })),
  history: (body) =>
    (body.messages ?? []).flatMap((message) => {
      if (message.role === "user") return [{ user: textOf(message.content) }];
      return message.role === "tool" ? [{ result: textOf(message.content) }] : [];
    }),
  answer(body, { tool, args, text }) {
    const base = { id: id("chatcmpl-"), created: Math.floor(Date.now() / 1000), model: body.model };
    const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
    const call = tool && { id: id("call_"), type: "function", function: { name: tool.name, arguments: JSON.stringify(args) } };
    const message = call ? { role: "assistant", content: null, tool_calls: [call] } : { role: "assistant", content: text };
    const finish_reason = call ? "tool_calls" : "stop";
    const chunk = (choices, more) => ({ data: { ...base, object: "chat.completion.chunk", choices, ...more } });
    const delta = call ? { ...message, tool_calls: [{ index: 0, ...call }] } : message;
    return {
      whole: { ...base, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage },
      events: [
        chunk([{ index: 0, delta, finish_reason: null }]),
        chunk([{ index: 0, delta: {}, finish_reason }]),
        chunk([], { usage }),
        { data: "[DONE]" },
      ],
    };
  },
};

const responses = {
  matches: (path) => path.endsWith("/responses"),
  streams: (body) => body.stream === true,
  tools(body) {
    // Tools come in namespaces, and more of them in the middle of the conversation.
    const later = (Array.isArray(body.input) ? body.input : []).filter((item) => item.type === "additional_tools");
    const all = [...(body.tools ?? []), ...later.flatMap((item) => item.tools ?? [])];
    return all.flatMap((tool) =>
      tool.type === "namespace"
        ? (tool.tools ?? []).map((inner) => ({ name: inner.name, namespace: tool.name }))
        : [{ name: tool.name ?? tool.type ?? "" }],
    );
  },
  history(body) {
    const input = typeof body.input === "string" ? [{ role: "user", content: body.input }] : (body.input ?? []);
    return input.flatMap((item) => {
      if (String(item.type ?? "").endsWith("_output")) return [{ result: textOf(item.output) }];
      return item.role === "user" ? [{ user: textOf(item.content) }] : [];
    });
  },
  answer(body, { tool, args, text }) {
    const item = tool
      ? {
          type: "function_call",
          id: id("fc_"),
          call_id: id("call_"),
          name: tool.name,
          ...(tool.namespace && { namespace: tool.namespace }),
          arguments: JSON.stringify(args),
          status: "completed",
        }
      : {
          type: "message",
          id: id("msg_"),
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text, annotations: [] }],
        };
    const usage = {
      input_tokens: 10,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 15,
    };
    const whole = {
      id: id("resp_"),
      object: "response",
      created_at: Math.floor(Date.now() / 1000),
      model: body.model,
      status: "completed",
      output: [item],
      usage,
    };
    const place = { output_index: 0, item_id: item.id, content_index: 0 };
    const events = [
      { type: "response.created", response: { ...whole, status: "in_progress", output: [], usage: null } },
      { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress" } },
      ...(tool ? [] : [{ type: "response.output_text.delta", ...place, delta: text }]),
      { type: "response.output_item.done", output_index: 0, item },
      { type: "response.completed", response: whole },
    ];
    return {
      whole,
      events: events.map((data, number) => ({ event: data.type, data: { ...data, sequence_number: number } })),
    };
  },
};

const gemini = {
  matches: (path) => /:(streamG|g)enerateContent$/.test(path),
  streams: (_body, path) => path.includes(":stream"),
  tools: (body) =>
    (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []).map((tool) => ({ name: tool.name })),
  history: (body) =>
    (body.contents ?? [])
      .filter((content) => content.role !== "model")
      .flatMap((content) => content.parts ?? [])
      .map((part) =>
        part.functionResponse ? { result: textOf(part.functionResponse.response) } : { user: textOf(part.text) },
      ),
  answer(body, { tool, args, text }) {
    const part = tool ? { functionCall: { name: tool.name, args } } : { text };
    const whole = {
      candidates: [{ content: { role: "model", parts: [part] }, finishReason: "STOP", index: 0 }],
      usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 },
      modelVersion: body.model ?? "scripted",
    };
    return { whole, events: [{ data: whole }] };
  },
};

const FORMATS = { anthropic, chat, responses, gemini };

/** The tool that a script means: of that name, or with a name that ends with it after something that is no letter. */
export function meant(tools, name) {
  const whole = (tool) => (tool.namespace ? `${tool.namespace}__${tool.name}` : tool.name);
  const exact = tools.find((tool) => tool.name === name);
  return exact ?? tools.find((tool) => whole(tool).endsWith(name) && !/[a-z0-9]$/i.test(whole(tool).slice(0, -name.length)));
}

/** What is next in the script, for a conversation so far. */
export function next(scenes, tools, history) {
  const played = history.map((said) => [...(said.user ?? "").matchAll(/\(scene: ([\w-]+)\)/g)].at(-1)?.[1]);
  const begin = played.findLastIndex((name) => name !== undefined);
  const scene = played[begin];
  const earlier = played.slice(0, Math.max(begin, 0)).filter((name) => name !== undefined);
  const results = history.slice(begin + 1).filter((said) => said.result !== undefined).map((said) => said.result);
  const last = (results.at(-1) ?? "").slice(0, MAX_TEXT);
  const about = { scene, earlier, step: results.length, last };
  const step = tools.length > 0 ? scenes[scene]?.[results.length] : undefined;
  if (!step) return { ...about, text: NOTHING };
  if (step.call === undefined) return { ...about, text: step.say.replaceAll("$last", last) };
  const tool = meant(tools, step.call);
  return tool ? { ...about, tool, args: step.args ?? {} } : { ...about, text: `There is no tool ${step.call}.` };
}

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const raw = Buffer.concat(chunks);
  const unpack = { gzip: gunzipSync, deflate: inflateSync, br: brotliDecompressSync }[request.headers["content-encoding"]];
  const text = (unpack ? unpack(raw) : raw).toString();
  return text === "" ? {} : JSON.parse(text);
}

/**
 * Starts the model on 127.0.0.1. `scenes` are the scripts by name; `log` is a file that gets a line of JSON for every
 * request, with those of the `words` that are in it, and with `bodies` the whole of it.
 */
export async function startModel({ scenes, port = 0, log, words = [], bodies = false }) {
  const note = (entry) => log && appendFileSync(log, `${JSON.stringify({ at: new Date().toISOString(), ...entry })}\n`);

  async function answer(request, response) {
    const path = new URL(request.url, "http://localhost").pathname;
    const json = (status, value) => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    if (request.method === "HEAD") return response.writeHead(200).end();
    if (request.method === "GET") {
      note({ get: path });
      const model = { id: "scripted", object: "model", type: "model", display_name: "Scripted", created: 0, owned_by: "test" };
      return json(200, { object: "list", data: [model], models: [{ name: "models/scripted" }], has_more: false });
    }
    const body = await bodyOf(request);
    if (/(\/count_tokens|:countTokens)$/.test(path)) return json(200, { input_tokens: 10, totalTokens: 10 });
    const [name, format] = Object.entries(FORMATS).find(([, format]) => format.matches(path)) ?? [];
    if (!format) {
      note({ unknown: path, body });
      return json(404, { error: { type: "not_found_error", message: `nothing is at ${path}` } });
    }
    const tools = format.tools(body);
    const chosen = next(scenes, tools, format.history(body));
    const { tool, args, text, ...about } = chosen;
    const did = tool ? { call: tool.name, args } : { say: text };
    const all = JSON.stringify(body);
    const heard = words.filter((word) => all.includes(word));
    note({ format: name, ...about, ...did, heard, tools: tools.map((tool) => tool.name), ...(bodies && { body }) });
    const { whole, events } = format.answer(body, chosen);
    if (!format.streams(body, path)) return json(200, whole);
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
    for (const { event, data } of events) {
      const line = typeof data === "string" ? data : JSON.stringify(data);
      response.write(`${event ? `event: ${event}\n` : ""}data: ${line}\n\n`);
    }
    response.end();
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      note({ failed: request.url, error: String(error) });
      if (!response.headersSent) response.writeHead(400);
      response.end(String(error));
    });
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  return {
    port: server.address().port,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [scenes, port = "0", log] = process.argv.slice(2);
  if (!scenes) {
    console.error("usage: node model.mjs SCENES.json [PORT] [LOG]");
    process.exit(2);
  }
  const model = await startModel({ scenes: JSON.parse(readFileSync(scenes, "utf8")), port: Number(port), log });
  console.log(`http://127.0.0.1:${model.port}`);
}
