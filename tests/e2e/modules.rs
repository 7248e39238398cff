//! Node's modules, the web's globals, and the ways to import: each is put to a use that fails when
//! it does not work. The specs are extensions with one tool, in `specs/modules`.

use std::process::Stdio;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_tests::Run;
use tenon_tests::Workspace;
use tenon_tests::folder;

/// How long a spec may take. They take milliseconds; one that waits for what never comes must not
/// hold up the others for ever.
const DEADLINE: Duration = Duration::from_secs(300);

/// Calls a tool and returns its result object.
fn call(workspace: &Workspace, tool: &str, args: &Value) -> Value {
    let mut command = workspace.command(&["call", tool, "--json", "--args", &args.to_string()]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let start = Instant::now();
    let mut hangs = false;
    while !hangs && child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
        hangs = start.elapsed() > DEADLINE;
    }
    if hangs {
        child.kill().unwrap();
    }
    let run = Run::new(child.wait_with_output().unwrap());
    assert!(!hangs, "no answer from {tool} in {DEADLINE:?}: {run:#?}");
    run.json()
}

/// What a tool answers, after checking that it succeeded.
fn answer(workspace: &Workspace, tool: &str) -> String {
    let result = call(workspace, tool, &json!({}));
    assert_eq!(result["resultType"], "success", "{result:#}");
    result["textResultForLlm"].as_str().unwrap().to_owned()
}

/// What the tool of a spec answers.
fn spec(name: &str) -> String {
    let source = folder("specs/modules").join(name);
    let workspace = Workspace::new().linked_extension(name, &source);
    answer(&workspace, &format!("check_{}", name.replace('-', "_")))
}

#[test]
fn node_path_joins_parses_and_relates() {
    assert_eq!(spec("path"), r"../docs/a.md a\c");
}

#[test]
fn node_fs_reads_writes_and_watches() {
    assert_eq!(spec("fs"), "rename of news.txt");
}

#[test]
fn node_fs_promises_uses_handles_and_watches() {
    assert_eq!(spec("fs-promises"), "3 lines, then seen.txt changed");
}

#[test]
fn node_os_agrees_with_the_system() {
    assert_eq!(spec("os"), "LE /dev/null");
}

#[test]
fn node_url_turns_paths_into_urls_and_back() {
    assert_eq!(spec("url"), "file: 1 /one/three");
}

#[test]
fn node_child_process_talks_through_pipes() {
    assert_eq!(spec("child_process"), "cat said second, sh exited with 3");
}

#[test]
fn node_http_serves_fetch_and_request() {
    assert_eq!(spec("http"), "client sent one two to /echo?q=1");
}

#[test]
fn node_https_trusts_only_what_it_was_given() {
    assert_eq!(spec("https"), "GET /b, else DEPTH_ZERO_SELF_SIGNED_CERT");
}

#[test]
fn node_crypto_gives_the_known_answers() {
    assert_eq!(spec("crypto"), "sha256 ba7816bf");
}

#[test]
fn node_sqlite_keeps_rows() {
    assert_eq!(spec("sqlite"), "first, second");
}

#[test]
fn node_module_makes_a_require() {
    assert_eq!(spec("module"), "helper.cjs knows 42");
}

#[test]
fn node_util_promisifies_inspects_and_parses() {
    assert_eq!(spec("util"), "[ 42, [length]: 1 ] dir");
}

#[test]
fn node_buffer_encodes_and_shares_bytes() {
    assert_eq!(spec("buffer"), "T25lLCB0d28=");
}

#[test]
fn node_process_knows_itself_and_its_environment() {
    assert_eq!(spec("process"), "now tick promise; SpecWarning");
}

#[test]
fn node_zlib_speaks_gzip() {
    assert_eq!(spec("zlib"), "88000 bytes came through");
}

#[test]
fn node_timers_fire_in_order_and_stop() {
    assert_eq!(spec("timers"), "first third, 3 ticks");
}

#[test]
fn node_timers_promises_wait_iterate_and_abort() {
    assert_eq!(spec("timers-promises"), "3 ticks");
}

#[test]
fn node_net_echoes_over_tcp_and_unix_sockets() {
    assert_eq!(spec("net"), "tcp PING, unix PING");
}

#[test]
fn node_readline_finds_the_lines() {
    assert_eq!(spec("readline"), "one two € last");
}

#[test]
fn node_stream_transforms_under_pressure() {
    assert_eq!(spec("stream"), "HELLO! 1 9 25");
}

#[test]
fn node_stream_promises_pipe_files_and_abort() {
    assert_eq!(spec("stream-promises"), "50000 lines");
}

#[test]
fn node_events_keep_their_order() {
    assert_eq!(spec("events"), "a1 b1 once1 a2 b2 a3 b3, then 2 words");
}

#[test]
fn node_dns_finds_localhost_and_asks_servers() {
    assert_eq!(spec("dns"), "localhost is 127.0.0.1");
}

#[test]
fn node_tls_checks_names_and_certificates() {
    assert_eq!(spec("tls"), "HELLO as localhost");
}

#[test]
#[cfg_attr(feature = "quickjs", ignore = "QuickJS: the contexts of node:vm need a snapshot")]
fn node_vm_runs_code_in_its_own_context() {
    assert_eq!(spec("vm"), "42 and 3");
}

#[test]
fn node_assert_passes_and_fails_as_it_should() {
    assert_eq!(spec("assert"), "13 hold, 14 do not");
}

#[test]
#[cfg_attr(
    feature = "quickjs",
    ignore = "QuickJS: UTF-16 surrogates that arrive byte by byte are lost"
)]
fn node_string_decoder_keeps_characters_whole() {
    assert_eq!(spec("string_decoder"), "€a");
}

#[test]
fn node_querystring_parses_and_writes() {
    assert_eq!(spec("querystring"), "q=a%20b%26c&list=1&list=2&ok=true&none=&n=&big=5");
}

#[test]
fn node_perf_hooks_measure_and_observe() {
    assert_eq!(spec("perf_hooks"), "mark start, mean 22");
}

#[test]
#[cfg_attr(feature = "quickjs", ignore = "QuickJS: worker threads need a snapshot")]
fn node_worker_threads_compute_with_a_copy_of_the_environment() {
    assert_eq!(spec("worker_threads"), "1229 primes");
}

#[test]
fn nodes_globals_are_the_modules_own() {
    assert_eq!(spec("globals"), "tick microtask timeout");
}

#[test]
fn fetch_sends_follows_streams_and_aborts() {
    assert_eq!(spec("fetch"), "POST /echo?q=%C3%BC");
}

#[test]
fn websocket_echoes_and_closes() {
    assert_eq!(spec("websocket"), "grüße, closed with 4001");
}

#[test]
fn web_streams_pull_pipe_and_compress() {
    assert_eq!(spec("web-streams"), "5 pulled, 3 logged");
}

#[test]
#[cfg_attr(feature = "quickjs", ignore = "QuickJS: errors cannot be cloned")]
fn structured_clone_copies_what_json_cannot() {
    assert_eq!(spec("structured-clone"), "12 kinds copied");
}

#[test]
fn abort_signals_fire_once_with_a_reason() {
    assert_eq!(spec("abort"), "2 events, then TimeoutError");
}

#[test]
fn text_is_encoded_and_decoded() {
    assert_eq!(spec("text-encoding"), "é€😀 in 9 bytes");
}

#[test]
fn performance_marks_and_measures() {
    assert_eq!(spec("performance"), "a to b took 25");
}

#[test]
fn url_is_a_global() {
    assert_eq!(spec("url-global"), "https://example.com/%C3%BC%20x?x=1&x=2&y=a+b%26%C3%BC");
}

#[test]
fn webcrypto_gives_the_known_answers() {
    assert_eq!(spec("webcrypto"), "SHA-256 ba7816bf, PBKDF2 ea6c014d");
}

#[test]
#[cfg_attr(
    feature = "quickjs",
    ignore = "QuickJS: WebAssembly memory has another size than asked for"
)]
fn webassembly_computes_calls_out_and_traps() {
    assert_eq!(spec("wasm"), "40 + 2 = 42, from 105 bytes");
}

/// The extension of the tests of imports, below the working directory.
const IMPORTS: &str = ".github/extensions/imports";

/// What a handler returns in an extension with the given files beside it, and with `imports` before
/// its call of `joinSession`. `../` leads out of the extension's folder.
fn imported(files: &[(&str, &str)], imports: &str, body: &str) -> (Workspace, Value) {
    let source = format!(
        "import {{ joinSession }} from \"@github/copilot-sdk/extension\";\n{imports}\n\
         await joinSession({{ tools: [{{ name: \"t\", description: \"\",\n\
         handler: async () => {{ {body} }} }}] }});\n"
    );
    let workspace = Workspace::new().extension("imports", &source);
    for (path, text) in files {
        workspace.file(&format!("{IMPORTS}/{path}"), text);
    }
    let value = serde_json::from_str(&answer(&workspace, "t")).unwrap();
    (workspace, value)
}

#[test]
fn relative_imports_share_one_module() {
    let files = [
        ("lib/counter.mjs", "export let count = 0;\nexport function add() { count += 1; }\n"),
        (
            "lib/again.mjs",
            "export { count as seen } from './counter.mjs';\nexport default 'again';\n",
        ),
        ("../../shared.mjs", "export const shared = 'from above';\n"),
    ];
    let imports = "import { add, count } from './lib/counter.mjs';\n\
                   import again, { seen } from './lib/again.mjs';\n\
                   import { shared } from '../../shared.mjs';\n";
    let (_, value) =
        imported(&files, imports, "add(); add(); return [count, seen, again, shared];");
    assert_eq!(value, json!([2, 2, "again", "from above"]));
}

#[test]
fn import_meta_tells_where_a_module_is() {
    let files = [("lib/a b.mjs", "export const meta = import.meta;\n")];
    let body = "return [import.meta, meta].map(({ url, dirname, filename }) => [url, dirname, filename])\
                .concat([import.meta.resolve('./lib/x.mjs')]);";
    let (workspace, value) = imported(&files, "import { meta } from './lib/a b.mjs';", body);
    let home = workspace.cwd().join(IMPORTS);
    let home = home.to_str().unwrap();
    assert_eq!(
        value,
        json!([
            [format!("file://{home}/extension.mjs"), home, format!("{home}/extension.mjs")],
            [
                format!("file://{home}/lib/a%20b.mjs"),
                format!("{home}/lib"),
                format!("{home}/lib/a b.mjs")
            ],
            format!("file://{home}/lib/x.mjs"),
        ])
    );
}

#[test]
fn dynamic_imports_load_when_they_are_reached() {
    let files = [
        ("lazy.mjs", "globalThis.loads = (globalThis.loads ?? 0) + 1;\nexport default 'lazy';\n"),
        ("broken.mjs", "throw new RangeError('broken on purpose');\n"),
    ];
    let body = "const before = globalThis.loads ?? 0;\n\
        const first = await import('./lazy.mjs');\n\
        const second = await import(new URL('./lazy.mjs', import.meta.url).href);\n\
        const data = await import('data:text/javascript,export default 7');\n\
        const errors = [];\n\
        for (const name of ['./broken.mjs', './missing.mjs', 'no-such-package'])\n\
          await import(name).catch((error) => errors.push(error.code ?? error.message));\n\
        return [before, first.default, first === second, globalThis.loads, data.default, errors];";
    let (_, value) = imported(&files, "", body);
    assert_eq!(
        value,
        json!([
            0,
            "lazy",
            true,
            1,
            7,
            ["broken on purpose", "ERR_MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND"]
        ])
    );
}

#[test]
fn json_is_imported_with_an_attribute() {
    let files = [("data.json", r#"{ "name": "data", "list": [1, 2] }"#)];
    let body = "const again = await import('./data.json', { with: { type: 'json' } });\n\
        const without = await import('./data.json').catch((error) => error.message);\n\
        return [data, again.default === data, without.includes('type: json')];";
    let imports = "import data from './data.json' with { type: 'json' };";
    let (_, value) = imported(&files, imports, body);
    assert_eq!(value, json!([{ "name": "data", "list": [1, 2] }, true, true]));
}

#[test]
fn commonjs_files_are_imported_by_name() {
    let files = [
        (
            "old.cjs",
            "exports.add = (a, b) => a + b;\nexports.file = __filename;\n\
             module.exports.fromJson = require('./data.json').name;\n",
        ),
        ("data.json", r#"{ "name": "data" }"#),
        ("whole.cjs", "module.exports = (text) => text + '!';\nmodule.exports.version = 3;\n"),
    ];
    let imports = "import { createRequire } from 'node:module';\n\
                   import old, { add, file, fromJson } from './old.cjs';\n\
                   import shout, { version } from './whole.cjs';\n";
    let body = "const required = createRequire(import.meta.url)('./old.cjs');\n\
        return [add(1, 2), file, fromJson, old.add === add, required === old, shout('x'), version];";
    let (workspace, value) = imported(&files, imports, body);
    let file = workspace.cwd().join(IMPORTS).join("old.cjs");
    assert_eq!(value, json!([3, file.to_str().unwrap(), "data", true, true, "x!", 3]));
}

#[test]
fn packages_beside_the_extension_are_found() {
    let files = [
        (
            "node_modules/tiny-esm/package.json",
            r##"{ "name": "tiny-esm", "version": "1.2.3", "type": "module",
                  "imports": { "#base": "./base.js" },
                  "exports": { ".": { "require": "./wrong.cjs", "import": "./main.js" }, "./extra": "./extra.js" } }"##,
        ),
        (
            "node_modules/tiny-esm/main.js",
            "import { base } from '#base';\nexport const name = 'tiny-esm';\n\
             export default (n) => n * base;\n",
        ),
        ("node_modules/tiny-esm/base.js", "export const base = 2;\n"),
        ("node_modules/tiny-esm/extra.js", "export default 'extra';\n"),
    ];
    let imports = "import double, { name } from 'tiny-esm';\nimport extra from 'tiny-esm/extra';\n";
    let body = "const hidden = await import('tiny-esm/base.js').catch(() => 'not exported');\n\
        return [double(4), name, extra, hidden];";
    let (_, value) = imported(&files, imports, body);
    assert_eq!(value, json!([8, "tiny-esm", "extra", "not exported"]));
}

#[test]
fn packages_above_the_extension_are_found_and_nearer_ones_win() {
    let package = r#"{ "type": "module", "exports": "./index.js" }"#;
    let files = [
        ("../../../node_modules/@scope/above/package.json", package),
        ("../../../node_modules/@scope/above/index.js", "export const name = 'above';\n"),
        ("../../../node_modules/both/package.json", package),
        ("../../../node_modules/both/index.js", "export const where = 'far';\n"),
        ("node_modules/both/package.json", package),
        (
            "node_modules/both/index.js",
            "export const where = 'near';\nexport { name as peer } from '@scope/above';\n",
        ),
    ];
    let imports = "import { name } from '@scope/above';\nimport { peer, where } from 'both';\n";
    let (_, value) = imported(&files, imports, "return [name, peer, where];");
    assert_eq!(value, json!(["above", "above", "near"]));
}

#[test]
fn commonjs_packages_are_found() {
    let files = [
        (
            "node_modules/tiny-cjs/package.json",
            r#"{ "name": "tiny-cjs", "version": "1.0.0", "main": "lib" }"#,
        ),
        (
            "node_modules/tiny-cjs/lib/index.js",
            "const { hello } = require('./helper');\n\
             exports.greet = (name) => `${hello} ${name}`;\n\
             exports.peer = require('above').name;\n",
        ),
        ("node_modules/tiny-cjs/lib/helper.js", "exports.hello = 'hello';\n"),
        ("../../../node_modules/above/index.js", "exports.name = 'above';\n"),
    ];
    let imports = "import cjs, { greet, peer } from 'tiny-cjs';";
    let (_, value) = imported(&files, imports, "return [greet('you'), cjs.greet === greet, peer];");
    assert_eq!(value, json!(["hello you", true, "above"]));
}

#[test]
fn an_installed_copy_of_the_sdk_is_not_used() {
    let files = [
        ("node_modules/@github/copilot-sdk/package.json", r#"{ "name": "@github/copilot-sdk" }"#),
        ("node_modules/@github/copilot-sdk/index.js", "throw new Error('the installed SDK');\n"),
        (
            "node_modules/@github/copilot-sdk/extension.js",
            "throw new Error('the installed SDK');\n",
        ),
    ];
    let imports = "import { approveAll } from '@github/copilot-sdk';\n\
                   import { joinSession as ours } from '@tenon/sdk/extension';\n";
    let body = "return [typeof approveAll, joinSession === ours];";
    let (_, value) = imported(&files, imports, body);
    assert_eq!(value, json!(["function", true]));
}

/// A workspace with an extension that consists of the given files.
fn extension_of(files: &[(&str, &str)]) -> Workspace {
    let workspace = Workspace::new();
    for (path, text) in files {
        workspace.file(&format!(".github/extensions/entry/{path}"), text);
    }
    workspace
}

#[test]
fn an_entry_file_can_be_commonjs_by_name() {
    let entry = "const { joinSession } = require('@github/copilot-sdk/extension');\n\
        const { approveAll } = require('@github/copilot-sdk');\n\
        const { word } = require('./word');\n\
        joinSession({ tools: [{ name: 't', description: '', handler: () =>\n\
          `${word} by ${require('path').basename(__filename)}, ${typeof approveAll}` }] });\n";
    let workspace =
        extension_of(&[("extension.cjs", entry), ("word.js", "exports.word = 'required';\n")]);
    assert_eq!(answer(&workspace, "t"), "required by extension.cjs, function");
}

#[test]
fn a_tool_can_be_called_as_soon_as_its_extension_has_joined() {
    // CommonJS cannot wait for `joinSession`. Here its thread is busy just when the call comes.
    let entry = "const { joinSession } = require('@github/copilot-sdk/extension');\n\
        joinSession({ tools: [{ name: 't', description: '', handler: () => 'called' }] });\n\
        setImmediate(() => { for (const end = Date.now() + 200; Date.now() < end; ); });\n";
    let workspace = extension_of(&[("extension.cjs", entry)]);
    for _ in 0..10 {
        assert_eq!(answer(&workspace, "t"), "called");
    }
}

#[test]
fn an_entry_file_with_imports_is_a_module() {
    let entry = "import { basename } from 'node:path';\n\
        import { joinSession } from '@github/copilot-sdk/extension';\n\
        await joinSession({ tools: [{ name: 't', description: '', handler: () =>\n\
          `${basename(import.meta.filename)} ${typeof require}` }] });\n";
    let workspace = extension_of(&[("extension.js", entry)]);
    assert_eq!(answer(&workspace, "t"), "extension.js undefined");
}

#[test]
fn an_entry_file_without_imports_is_commonjs() {
    // The words alone make no module of it.
    let entry = "// import x from 'y'; await nothing; export it all.\n\
        const { joinSession } = require('@github/copilot-sdk/extension');\n\
        joinSession({ tools: [{ name: 't', description: '', handler: () =>\n\
          `${require('path').basename(__filename)} ${typeof module.exports}` }] });\n";
    let workspace = extension_of(&[("extension.js", entry)]);
    assert_eq!(answer(&workspace, "t"), "extension.js object");
}

#[test]
fn the_package_decides_what_an_entry_file_is() {
    let entry = "const { joinSession } = await import('@github/copilot-sdk/extension');\n\
        await joinSession({ tools: [{ name: 't', description: '', handler: () =>\n\
          typeof require }] });\n";
    let workspace =
        extension_of(&[("extension.js", entry), ("package.json", r#"{ "type": "module" }"#)]);
    assert_eq!(answer(&workspace, "t"), "undefined");
}

const TYPESCRIPT: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
import type { Tool } from "@github/copilot-sdk";
import { helper } from "./helper.ts";

enum Level { Low = 1, High }
const enum Flag { On = "on" }

interface Args {
  mode?: "throw" | "helper";
}

namespace Names { export const tool: string = "t"; }

abstract class Shape<T extends number = number> {
  declare label: string;
  #scale: T;
  constructor(public readonly x: T, private y: T) { this.#scale = 1 as T; }
  get area(): number { return this.x * this.y * this.#scale!; }
}
class Square extends Shape { override get area(): number { return super.area; } }

function fail(args: Args): never {
  const kept: unknown = args satisfies Args;
  throw new RangeError(`mode ${(kept as Args).mode}`); // here
}

const tool: Tool<Args> = {
  name: Names.tool,
  description: "",
  handler: async (args: Args): Promise<string> => {
    if (args.mode === "throw") fail(args);
    if (args.mode === "helper") return helper(<any>args);
    return `${Level[Level.High]} ${Flag.On} ${new Square(6, 7).area}`;
  },
};
await joinSession({ tools: [tool as Tool] });
"#;

const TYPESCRIPT_HELPER: &str = r#"export type Nothing = {
  a: string;
};

export function helper(value: { mode?: string }): string {
  return (value as any).nothing.here; // here
}
"#;

/// The line that says `// here`.
fn marked_line(source: &str) -> usize {
    source.lines().position(|line| line.ends_with("// here")).unwrap() + 1
}

#[test]
fn an_entry_file_can_be_typescript() {
    let workspace = extension_of(&[("extension.ts", TYPESCRIPT), ("helper.ts", TYPESCRIPT_HELPER)]);
    assert_eq!(answer(&workspace, "t"), "High on 42");
}

#[test]
fn errors_in_typescript_are_where_they_were_written() {
    let workspace = extension_of(&[("extension.ts", TYPESCRIPT), ("helper.ts", TYPESCRIPT_HELPER)]);
    for (mode, file, source, column, message) in [
        ("throw", "extension.ts", TYPESCRIPT, 9, "RangeError: mode throw"),
        ("helper", "helper.ts", TYPESCRIPT_HELPER, 33, "TypeError: Cannot read properties"),
    ] {
        let result = call(&workspace, "t", &json!({ "mode": mode }));
        assert_eq!(result["resultType"], "failure");
        assert!(result["error"].as_str().unwrap().starts_with(message), "{result:#}");
        let place = &result["location"];
        assert!(place["file"].as_str().unwrap().ends_with(&format!("/entry/{file}")), "{place}");
        assert_eq!(place["line"], marked_line(source), "{place}");
        assert_eq!(place["column"], column, "{place}");
    }
}

/// What a handler with the given body returns.
fn returned(body: &str) -> Value {
    let answer = answer(&Workspace::new().tool("t", body), "t");
    serde_json::from_str(&answer).unwrap()
}

#[test]
fn node_process_exec_path_is_a_program() {
    let paths = returned("return [process.execPath, process.argv[0]]");
    let program = paths[0].as_str().unwrap();
    assert!(std::path::Path::new(program).is_file(), "process.execPath is {program:?}");
    assert_eq!(paths[1], program);
}

#[test]
fn structured_clone_moves_what_is_transferred() {
    let body = "const buffer = new ArrayBuffer(16);\n\
        const moved = structuredClone({ buffer }, { transfer: [buffer] });\n\
        return [buffer.byteLength, buffer.detached, moved.buffer.byteLength]";
    assert_eq!(returned(body), json!([0, true, 16]));
}

#[test]
fn message_ports_move_what_is_transferred() {
    let body = "const { port1, port2 } = new MessageChannel();\n\
        const buffer = new ArrayBuffer(16);\n\
        const message = new Promise((resolve) => { port2.onmessage = resolve; });\n\
        port1.postMessage(buffer, [buffer]);\n\
        const { data } = await message;\n\
        port1.close();\n\
        return [buffer.byteLength, data.byteLength]";
    assert_eq!(returned(body), json!([0, 16]));
}

#[test]
#[cfg_attr(feature = "quickjs", ignore = "QuickJS: WebAssembly modules cannot be cloned")]
fn structured_clone_shares_memory_and_compiled_modules() {
    let body = "const memory = new SharedArrayBuffer(4);\n\
        new Uint8Array(structuredClone(memory))[0] = 7;\n\
        const empty = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]);\n\
        const clone = structuredClone(new WebAssembly.Module(empty));\n\
        return [new Uint8Array(memory)[0], clone instanceof WebAssembly.Module]";
    assert_eq!(returned(body), json!([7, true]));
}

#[test]
#[ignore = "deno_node 0.198: node:sqlite and node:test are also found without the prefix"]
fn a_package_may_have_the_name_of_a_module_that_needs_the_prefix() {
    let files = [
        ("node_modules/sqlite/package.json", r#"{ "name": "sqlite", "version": "5.1.1" }"#),
        ("node_modules/sqlite/index.js", "exports.from = 'the package';\n"),
    ];
    let imports = "import { createRequire, isBuiltin } from 'node:module';";
    let body = "const imported = await import('sqlite');\n\
        const required = createRequire(import.meta.url)('sqlite');\n\
        return [imported.from ?? 'node', required.from ?? 'node', isBuiltin('sqlite')];";
    let (_, value) = imported(&files, imports, body);
    assert_eq!(value, json!(["the package", "the package", false]));
}

// What follows is wrong in the deno crates, which we take as they are. Each test shows one defect.
// After raising the crates run them with --ignored, and let those that pass stand with the others.

#[test]
fn node_fs_append_file_sync_keeps_the_mode() {
    let body = "const fs = await import('node:fs');\n\
        fs.writeFileSync('f', 'a', { mode: 0o600 });\n\
        fs.appendFileSync('f', 'b');\n\
        return (fs.statSync('f').mode & 0o777).toString(8)";
    assert_eq!(returned(body), json!(600));
}

#[test]
fn node_fs_write_sync_of_text_takes_a_position() {
    let body = "const fs = await import('node:fs');\n\
        fs.writeFileSync('f', 'abcdef');\n\
        const file = fs.openSync('f', 'r+');\n\
        fs.writeSync(file, 'X', 3);\n\
        return [fs.readFileSync('f', 'utf8')]";
    assert_eq!(returned(body), json!(["abcXef"]));
}

#[test]
#[ignore = "deno_node 0.198: the event comes before close() returns"]
fn node_fs_watchers_say_that_they_closed_after_close() {
    let body = "const fs = await import('node:fs');\n\
        const watcher = fs.watch('.');\n\
        watcher.close();\n\
        return Promise.race([\n\
          new Promise((resolve) => watcher.on('close', () => resolve(true))),\n\
          new Promise((resolve) => setTimeout(resolve, 1000, false)),\n\
        ])";
    assert_eq!(returned(body), json!(true));
}

#[test]
#[cfg_attr(feature = "quickjs", ignore = "QuickJS: worker threads need a snapshot")]
fn node_worker_threads_end_when_they_close_their_port() {
    let body = "const { Worker } = await import('node:worker_threads');\n\
        const worker = new Worker(`const { parentPort } = require('node:worker_threads');\n\
          parentPort.on('message', () => parentPort.close());`, { eval: true });\n\
        worker.postMessage('close');\n\
        return new Promise((resolve) => {\n\
          worker.on('exit', resolve);\n\
          worker.on('error', (error) => resolve({ error: error.message }));\n\
        })";
    assert_eq!(returned(body), json!(0));
}

#[test]
#[ignore = "deno_web 0.291: the error of new URL has no code"]
fn url_errors_have_a_code() {
    let body = "try { new URL('no url'); } catch (error) { return [error.code, error.input]; }";
    assert_eq!(returned(body), json!(["ERR_INVALID_URL", "no url"]));
}

#[test]
#[ignore = "deno_node 0.198: keys and certificates are first looked at when a connection is made"]
fn node_tls_refuses_what_is_no_key() {
    let body = "const tls = await import('node:tls');\n\
        try { tls.createSecureContext({ key: 'no key', cert: 'no certificate' }); } catch { return true; }\n\
        return false";
    assert_eq!(returned(body), json!(true));
}

#[test]
#[ignore = "deno_web 0.291: entries are in the order in which they were made"]
fn performance_entries_are_in_the_order_of_their_start() {
    let body = "performance.mark('late', { startTime: 2 });\n\
        performance.mark('early', { startTime: 1 });\n\
        return performance.getEntriesByType('mark').map((entry) => entry.name)";
    assert_eq!(returned(body), json!(["early", "late"]));
}

#[test]
#[ignore = "deno_node 0.198: the object is another one, with the same functions"]
fn node_timers_has_node_timers_promises() {
    let body = "const timers = await import('node:timers');\n\
        const promises = await import('node:timers/promises');\n\
        return timers.promises === promises.default";
    assert_eq!(returned(body), json!(true));
}

#[test]
#[ignore = "deno_node 0.198: a held-up event loop is not noticed"]
fn node_perf_hooks_notice_a_held_up_event_loop() {
    let body = "const { monitorEventLoopDelay } = await import('node:perf_hooks');\n\
        const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));\n\
        const delay = monitorEventLoopDelay({ resolution: 5 });\n\
        delay.enable();\n\
        await wait(30);\n\
        for (const end = performance.now() + 100; performance.now() < end; );\n\
        await wait(30);\n\
        return delay.max > 50e6";
    assert_eq!(returned(body), json!(true));
}
