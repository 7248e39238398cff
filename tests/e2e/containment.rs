//! What one extension does stays its own: exit, directory, environment, output, signals, children.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_tests::Workspace;

use crate::results::log_of;

/// How long a process that was killed may take to be gone; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(300);

const SDK: &str = "import { joinSession } from '@github/copilot-sdk/extension';\n";

/// An extension that does something at load, beside one whose tool `look` reports what it sees.
fn beside(action: &str, look: &str) -> Workspace {
    let actor = format!(
        "{SDK}{action}\nawait joinSession({{ tools: [{{ name: 'acted', handler: () => 'yes' }}] }});"
    );
    Workspace::new().extension("actor", &actor).tool("look", look)
}

#[test]
fn process_exit_in_a_handler_ends_that_extension_only() {
    let workspace = Workspace::new().tool("leave", "process.exit(3)").tool("stay", "return 'here'");
    let result = workspace.call("leave", &json!({}));
    assert_eq!(result["resultType"], "failure");
    let text = result["textResultForLlm"].as_str().unwrap();
    assert_eq!(
        text,
        "project:leave ended before leave returned: the extension called process.exit(3)"
    );
    assert_eq!(workspace.answer("stay", &json!({})), "here");
}

#[test]
fn nothing_after_process_exit_runs() {
    let workspace = Workspace::new();
    let proof = workspace.cwd().join("after");
    let workspace = workspace.tool(
        "leave",
        &format!("try {{ process.exit(0) }} finally {{ (await import('fs')).writeFileSync({proof:?}, '') }}"),
    );
    workspace.call("leave", &json!({}));
    assert!(!proof.exists());
}

#[test]
fn exit_handlers_run_when_an_extension_exits_and_when_it_is_stopped() {
    for (name, body) in [("exits", "process.exit(0)"), ("stopped", "return ''")] {
        let workspace = Workspace::new();
        let proof = workspace.cwd().join("said-goodbye");
        let source = format!(
            "{SDK}import fs from 'node:fs';\n\
             process.on('exit', (code) => fs.appendFileSync({proof:?}, `exit ${{code}}\\n`));\n\
             await joinSession({{ tools: [{{ name: 't', handler: () => {{ {body} }} }}] }});"
        );
        let workspace = workspace.extension(name, &source);
        workspace.run(&["call", "t"]);
        assert_eq!(std::fs::read_to_string(&proof).unwrap(), "exit 0\n", "{name}");
    }
}

#[test]
fn sigterm_handlers_run_when_an_extension_is_stopped() {
    let workspace = Workspace::new();
    let proof = workspace.cwd().join("said-goodbye");
    let source = format!(
        "{SDK}import fs from 'node:fs';\n\
         process.on('SIGTERM', async () => {{\n\
           await new Promise((resolve) => setTimeout(resolve, 50));\n\
           fs.appendFileSync({proof:?}, 'terminated\\n');\n\
           process.exit(0);\n\
         }});\n\
         process.on('exit', () => fs.appendFileSync({proof:?}, 'exit\\n'));\n\
         setInterval(() => {{}}, 1000);\n\
         await joinSession({{ tools: [{{ name: 't', handler: () => '' }}] }});"
    );
    let workspace = workspace.extension("polite", &source);
    workspace.run(&["call", "t"]);
    assert_eq!(std::fs::read_to_string(&proof).unwrap(), "terminated\nexit\n");
}

#[test]
fn an_extension_that_ignores_its_end_is_ended() {
    let source = format!(
        "{SDK}process.on('SIGTERM', () => {{ for (;;) {{}} }});\n\
         await joinSession({{ tools: [{{ name: 't', handler: () => 'done' }}] }});"
    );
    let workspace = Workspace::new().extension("stubborn", &source);
    assert_eq!(workspace.answer("t", &json!({})), "done");
}

/// Whether a process is there. One that was killed and not yet waited for is a zombie, not alive.
fn is_alive(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until a process is gone. One that was killed may still be on its way out.
fn until_dead(pid: i32) {
    let begun = Instant::now();
    while is_alive(pid) {
        assert!(begun.elapsed() < PATIENCE, "process {pid} lives on");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn child_processes_end_with_their_extension_unless_detached() {
    let workspace = Workspace::new().tool(
        "spawns",
        "const { spawn } = await import('node:child_process');\n\
         const kept = spawn('sleep', ['300'], { detached: true, stdio: 'ignore' }); kept.unref();\n\
         return [spawn('sh', ['-c', 'sleep 300 & wait']).pid, kept.pid]",
    );
    let pids: Vec<i32> = serde_json::from_str(&workspace.answer("spawns", &json!({}))).unwrap();
    until_dead(pids[0]);
    assert!(is_alive(pids[1]));
    std::process::Command::new("kill").arg(pids[1].to_string()).status().unwrap();
}

#[test]
fn the_working_directory_is_the_sessions_and_a_change_stays_inside() {
    let workspace = beside(
        "process.chdir('/');",
        "const fs = await import('node:fs'); const { execFileSync } = await import('node:child_process');\n\
         return { cwd: process.cwd(), child: execFileSync('pwd').toString().trim(), here: fs.existsSync('marker'), \
           later: (await fs.promises.readFile('marker', 'utf8')) }",
    );
    workspace.file("marker", "x");
    let seen: Value = serde_json::from_str(&workspace.answer("look", &json!({}))).unwrap();
    let cwd = workspace.cwd();
    assert_eq!(seen, json!({ "cwd": cwd, "child": cwd, "here": true, "later": "x" }));
}

#[test]
fn a_changed_directory_holds_for_files_and_children_of_that_extension() {
    let workspace = Workspace::new().tool(
        "moves",
        "const fs = await import('node:fs'); const { execFileSync } = await import('node:child_process');\n\
         process.chdir('sub');\n\
         return [process.cwd(), execFileSync('pwd').toString().trim(), fs.readFileSync('f', 'utf8'), \
           await fs.promises.readFile('f', 'utf8')]",
    );
    workspace.file("sub/f", "deep");
    let sub = workspace.cwd().join("sub");
    let seen: Value = serde_json::from_str(&workspace.answer("moves", &json!({}))).unwrap();
    assert_eq!(seen, json!([sub, sub, "deep", "deep"]));
}

#[test]
fn environment_changes_stay_inside_and_reach_children() {
    let workspace = beside(
        "process.env.ADDED = 'by actor'; delete process.env.PATH;",
        "process.env.OWN = 'mine'; const { execFileSync, execSync } = await import('node:child_process');\n\
         return { added: process.env.ADDED ?? null, path: typeof process.env.PATH, \
           child: execFileSync('sh', ['-c', 'echo $OWN']).toString().trim(), \
           shell: execSync('echo $OWN').toString().trim() }",
    );
    let seen: Value = serde_json::from_str(&workspace.answer("look", &json!({}))).unwrap();
    assert_eq!(seen, json!({ "added": null, "path": "string", "child": "mine", "shell": "mine" }));
}

#[test]
fn secrets_reach_neither_the_extension_nor_its_children_unless_granted() {
    let look = "const { execSync, spawn, spawnSync } = await import('node:child_process');\n\
        const text = (s) => new Promise((r) => { let all = ''; s.on('data', (d) => all += d); s.on('end', () => r(all.trim())); });\n\
        const command = 'echo $MY_API_KEY-$GITHUB_TOKEN-$PLAIN';\n\
        return [process.env.MY_API_KEY ?? null, process.env.GITHUB_TOKEN ?? null, process.env.PLAIN ?? null, \
          execSync(command).toString().trim(), spawnSync('sh', ['-c', command]).stdout.toString().trim(), \
          await text(spawn('sh', ['-c', command]).stdout)]";
    let workspace = Workspace::new()
        .tool("look", look)
        .env("MY_API_KEY", "k")
        .env("GITHUB_TOKEN", "t")
        .env("PLAIN", "p");
    let seen: Value = serde_json::from_str(&workspace.answer("look", &json!({}))).unwrap();
    assert_eq!(seen, json!([null, null, "p", "--p", "--p", "--p"]));
    workspace.home_file("config.toml", "[extensions.look]\nallow-env = [\"GITHUB_TOKEN\"]\n");
    let seen: Value = serde_json::from_str(&workspace.answer("look", &json!({}))).unwrap();
    assert_eq!(seen, json!([null, "t", "p", "-t-p", "-t-p", "-t-p"]));
}

#[test]
fn output_goes_to_the_extensions_log_and_never_to_ours() {
    let source = format!(
        "{SDK}console.log('from log'); console.error('from error'); console.warn('from warn');\n\
         process.stdout.write('from stdout\\n'); process.stderr.write('from stderr\\n');\n\
         const {{ execSync, spawnSync }} = await import('node:child_process');\n\
         spawnSync('echo', ['from child'], {{ stdio: 'inherit' }});\n\
         spawnSync('echo', ['from numbers'], {{ stdio: ['ignore', 1, 2, 'pipe'] }});\n\
         try {{ (await import('node:fs')).writeFileSync('/dev/stdout', 'from the device'); }} catch {{}}\n\
         await joinSession({{ tools: [{{ name: 't', handler: () => 'result' }}] }});"
    );
    let workspace = Workspace::new().extension("loud", &source);
    let run = workspace.run(&["call", "t"]);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("result\n", ""));
    let log = log_of(&workspace, "loud");
    for line in [
        "info: from log",
        "error: from error",
        "from warn",
        "from stdout",
        "from stderr",
        "from child",
    ] {
        assert!(log.contains(line), "{line} is missing in\n{log}");
    }
}

#[test]
fn a_flood_of_output_blocks_nobody() {
    let workspace = Workspace::new().tool(
        "floods",
        "for (let i = 0; i < 20000; i++) process.stdout.write('x'.repeat(100) + '\\n'); return 'done'",
    );
    assert_eq!(workspace.answer("floods", &json!({})), "done");
}

#[test]
fn a_line_of_output_over_the_limit_is_cut_into_several() {
    let workspace = Workspace::new()
        .tool("long", "process.stdout.write('y'.repeat(70 * 1024) + '\\nend\\n'); return 'done'");
    let run = workspace.run(&["call", "long", "--verbose"]);
    let own = run.stderr.lines().filter(|line| !line.starts_with("=== "));
    let lengths: Vec<usize> = own.map(str::len).collect();
    assert_eq!(lengths, [64 * 1024, 6 * 1024, 3], "{lengths:?}");
}

#[test]
fn standard_input_is_empty() {
    let workspace = Workspace::new().tool(
        "reads",
        "const fs = await import('node:fs'); return String(fs.readFileSync(0, 'utf8').length)",
    );
    assert_eq!(workspace.answer("reads", &json!({})), "0");
}

#[test]
fn killing_the_own_process_ends_the_extension_and_probing_it_works() {
    let workspace = Workspace::new()
        .tool("kills", "process.kill(process.pid, 'SIGTERM'); return 'still here'")
        .tool("probes", "return String(process.kill(process.pid, 0))");
    let text = workspace.call("kills", &json!({}))["textResultForLlm"].to_string();
    assert!(text.contains("process.exit(143)"), "{text}");
    assert_eq!(workspace.answer("probes", &json!({})), "true");
}

#[test]
fn abort_ends_the_extension_only() {
    let workspace =
        Workspace::new().tool("aborts", "process.abort()").tool("stays", "return 'yes'");
    let text = workspace.call("aborts", &json!({}))["textResultForLlm"].to_string();
    assert!(text.contains("process.exit(134)"), "{text}");
    assert_eq!(workspace.answer("stays", &json!({})), "yes");
}

#[test]
fn an_unhandled_rejection_later_ends_the_extension_with_its_place() {
    let source = format!(
        "{SDK}await joinSession({{ tools: [{{ name: 't', handler: () => new Promise(() => {{\n\
         Promise.reject(new Error('nobody caught me'));\n}}) }}] }});"
    );
    let workspace = Workspace::new().extension("careless", &source);
    let text = workspace.call("t", &json!({}))["textResultForLlm"].to_string();
    assert!(text.contains("nobody caught me"), "{text}");
}

#[test]
fn a_heap_over_its_limit_ends_that_extension_only() {
    let workspace = Workspace::new()
        .tool("grows", "const all = []; for (;;) all.push(new Array(1000).fill(Math.random()))")
        .tool("stays", "return 'yes'");
    workspace.home_file("config.toml", "[extensions.grows]\nheap-mb = 64\n");
    let text = workspace.call("grows", &json!({}))["textResultForLlm"].to_string();
    assert!(text.contains("its heap reached the limit of 64 MB"), "{text}");
    assert_eq!(workspace.answer("stays", &json!({})), "yes");
}

#[test]
fn a_profile_denies_with_the_extension_the_permission_and_the_place() {
    let workspace = Workspace::new().extension(
        "reader",
        &format!(
            "{SDK}import fs from 'node:fs';\n\
             await joinSession({{ tools: [{{ name: 'reads', handler: ({{ path }}) =>\n\
             fs.readFileSync(path, 'utf8') }}] }});"
        ),
    );
    workspace.file("inside.txt", "inside");
    workspace.home_file("config.toml", "[extensions.reader]\nprofile = \"workspace\"\n");
    assert_eq!(workspace.answer("reads", &json!({ "path": "inside.txt" })), "inside");
    let result = workspace.call("reads", &json!({ "path": "/etc/passwd" }));
    let error = result["error"].as_str().unwrap();
    assert!(error.contains("project:reader has no read access to \"/etc/passwd\""), "{error}");
    assert_eq!(result["location"]["line"], 4, "{result:#}");
}

#[test]
fn the_workspace_profile_has_no_network_and_no_subprocess() {
    let workspace = Workspace::new().tool(
        "tries",
        "const said = []; const note = async (name, f) => { try { await f(); said.push(name + ' worked'); } \
           catch (e) { said.push(name + ': ' + e.message); } };\n\
         const { execFileSync } = await import('node:child_process');\n\
         await note('run', () => execFileSync('true'));\n\
         await note('fetch', () => fetch('http://127.0.0.1:8099/'));\n\
         await note('write', async () => (await import('node:fs')).writeFileSync('/tmp/tenon-should-not-exist', ''));\n\
         await note('own', async () => (await import('node:fs')).writeFileSync('own.txt', ''));\n\
         return said",
    );
    workspace.home_file("config.toml", "[extensions.\"*\"]\nprofile = \"workspace\"\n");
    let run = workspace.run(&["call", "tries", "--verbose"]);
    let said: Vec<String> = serde_json::from_str(&run.stdout).unwrap();
    assert!(said[0].contains("project:tries has no run access to \"true\""), "{said:#?}");
    assert!(said[1].contains("project:tries has no net access to \"127.0.0.1:8099\""), "{said:#?}");
    assert!(said[2].contains("project:tries has no write access"), "{said:#?}");
    assert_eq!(said[3], "own worked");
    for permission in ["run", "net", "write"] {
        let line = format!("permission denied: {permission} access to ");
        assert!(run.stderr.contains(&line), "{}", run.stderr);
    }
    assert!(run.stderr.contains("tries/extension.mjs:"), "{}", run.stderr);
}

#[test]
fn the_workspace_profile_writes_to_its_data_and_session_folders() {
    let workspace = Workspace::new().tool(
        "t",
        "const fs = await import('node:fs'); const path = process.env.TENON_EXTENSION_DATA;\n\
         fs.writeFileSync(path + '/kept', 'x'); fs.writeFileSync(session.workspacePath + '/files/kept', 'x'); return path",
    );
    workspace.home_file("config.toml", "[extensions.t]\nprofile = \"workspace\"\n");
    let path = std::path::PathBuf::from(workspace.answer("t", &json!({})));
    assert!(path.starts_with(workspace.home().join("extension-data/project")), "{path:?}");
    assert!(path.join("kept").exists());
}

#[test]
fn a_server_without_network_permission_fails_to_load_with_the_reason() {
    let source = format!(
        "{SDK}import http from 'node:http';\n\
         const server = http.createServer();\n\
         await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));\n\
         await joinSession({{}});"
    );
    let workspace = Workspace::new().extension("server", &source);
    workspace.home_file("config.toml", "[extensions.server]\nprofile = \"workspace\"\n");
    let error = workspace.list()["server"]["error"].clone();
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("project:server has no net access to \"127.0.0.1:0\""), "{message}");
}

#[test]
fn a_denial_is_in_the_log_even_when_it_is_caught() {
    let source = format!(
        "{SDK}import fs from 'node:fs';\n\
         try {{\n  fs.readFileSync('/etc/passwd');\n}} catch {{}}\n\
         await joinSession({{}});"
    );
    let workspace = Workspace::new().extension("quiet", &source);
    workspace.home_file("config.toml", "[extensions.quiet]\nprofile = \"none\"\n");
    let log = log_of(&workspace, "quiet");
    assert!(log.contains("permission denied: read access to \"/etc/passwd\""), "{log}");
    assert!(log.contains("quiet/extension.mjs:4:6"), "{log}");
}

#[test]
fn an_extension_without_permissions_still_loads_its_own_files() {
    let workspace = Workspace::new().extension(
        "bare",
        &format!("{SDK}import {{ x }} from './lib/x.mjs';\nawait joinSession({{ tools: [{{ name: 't', handler: () => x }}] }});"),
    );
    workspace.file(".github/extensions/bare/lib/x.mjs", "export const x = 'own';");
    workspace.home_file("config.toml", "[extensions.bare]\nprofile = \"none\"\n");
    assert_eq!(workspace.answer("t", &json!({})), "own");
}

#[test]
fn importing_is_no_way_around_a_missing_read_permission() {
    let workspace = Workspace::new().tool(
        "t",
        "const m = await import('/etc/passwd', { with: { type: 'text' } }); return m.default",
    );
    workspace.home_file("config.toml", "[extensions.t]\nprofile = \"none\"\n");
    let text = workspace.call("t", &json!({}))["textResultForLlm"].to_string();
    assert!(text.contains("has no read access"), "{text}");
}

#[test]
fn process_wide_calls_are_out_of_reach_even_with_the_full_profile() {
    for call in
        ["process.setuid(1)", "process.setegid(1)", "(await import('node:os')).setPriority(19)"]
    {
        let workspace = Workspace::new().tool("t", &format!("{call}; return 'done'"));
        let text = workspace.call("t", &json!({}))["textResultForLlm"].to_string();
        assert!(text.contains("not available to extensions"), "{call}: {text}");
    }
}

#[test]
fn a_title_does_not_rename_the_host() {
    let workspace = Workspace::new().tool(
        "t",
        "process.title = 'renamed'; return (await import('node:fs')).readFileSync('/proc/self/cmdline', 'utf8')",
    );
    let shown = workspace.answer("t", &json!({}));
    assert!(!shown.contains("renamed") && shown.contains("tenon"), "{shown}");
}

#[test]
fn one_large_allocation_ends_that_extension_only() {
    let workspace = Workspace::new()
        .tool("grabs", "return String(new Array(1e8).fill(1).length)")
        .tool("stays", "return 'yes'");
    // Filling the usual heap takes long on a busy machine.
    workspace.home_file("config.toml", "[extensions.grabs]\nheap-mb = 64\n");
    let text = workspace.call("grabs", &json!({}))["textResultForLlm"].to_string();
    // Either the limit is noticed, or the engine refuses first.
    let ways = ["its heap reached the limit", "RangeError", "out of memory"];
    assert!(ways.iter().any(|way| text.contains(way)), "{text}");
    assert_eq!(workspace.answer("stays", &json!({})), "yes");
}

#[test]
#[cfg_attr(feature = "quickjs", ignore = "QuickJS: worker threads need a snapshot")]
fn a_workers_heap_counts_like_its_extensions() {
    let workspace = Workspace::new().tool(
        "grows",
        "const { Worker } = await import('node:worker_threads');\n\
         new Worker('const a = []; for (;;) a.push(new Array(1e5).fill(Math.random()));', { eval: true });\n\
         await new Promise(() => {})",
    );
    workspace.home_file("config.toml", "[extensions.grows]\nheap-mb = 64\n");
    let text = workspace.call("grows", &json!({}))["textResultForLlm"].to_string();
    assert!(text.contains("its heap reached the limit of 64 MB"), "{text}");
}

#[test]
#[cfg_attr(feature = "quickjs", ignore = "QuickJS: worker threads need a snapshot")]
fn a_worker_has_no_more_rights_than_its_extension_and_requires_like_it() {
    let workspace = Workspace::new().tool(
        "tries",
        "const said = (worker) => new Promise((resolve) => { worker.onmessage = (e) => resolve(e.data); \
           worker.onerror = (e) => { e.preventDefault(); resolve('error: ' + e.message); }; });\n\
         const reads = `import('file:///etc/passwd', { with: { type: 'text' } }) \
           .then((m) => postMessage(m.default), (e) => postMessage('error: ' + e.message))`;\n\
         const url = (code) => 'data:text/javascript,' + encodeURIComponent(code);\n\
         const requires = `import { createRequire } from 'node:module'; postMessage(typeof createRequire)`;\n\
         return [await said(new Worker(url(reads), { type: 'module' })), await said(new Worker(url(requires), { type: 'module' })), \
           await said(new Worker(url('postMessage(1)'), { type: 'module', deno: { permissions: 'none' } }))]",
    );
    workspace.home_file("config.toml", "[extensions.tries]\nprofile = \"none\"\n");
    let said: Value = serde_json::from_str(&workspace.answer("tries", &json!({}))).unwrap();
    assert!(said[0].as_str().unwrap().contains("project:tries has no read access"), "{said}");
    assert_eq!((&said[1], &said[2]), (&json!("function"), &json!(1)));
}

#[test]
fn links_and_dots_lead_past_no_permission() {
    let workspace = Workspace::new().extension(
        "sly",
        &format!(
            "{SDK}import Module from 'node:module';\n\
             const tries = {{\n\
               link: () => import('./link.txt', {{ with: {{ type: 'text' }} }}),\n\
               dots: () => {{ const path = import.meta.dirname + '/node_modules/../../../../../../../../../etc/passwd'; let got;\n\
                 Module._extensions['.js']({{ _compile(code) {{ got = code; }}, filename: path, paths: [], exports: {{}} }}, path);\n\
                 return got; }} }};\n\
             await joinSession({{ tools: [{{ name: 'tries', handler: async ({{ how }}) => {{ await tries[how](); return 'worked'; }} }}] }});"
        ),
    );
    workspace.file(".github/extensions/sly/node_modules/x/package.json", "{}");
    let link = workspace.cwd().join(".github/extensions/sly/link.txt");
    std::os::unix::fs::symlink("/etc/passwd", link).unwrap();
    workspace.home_file("config.toml", "[extensions.sly]\nprofile = \"none\"\n");
    for how in ["link", "dots"] {
        let text = workspace.call("tries", &json!({ "how": how }))["textResultForLlm"].to_string();
        assert!(text.contains("has no read access"), "{how}: {text}");
    }
}

#[test]
fn secrets_are_not_in_the_process_environment_either() {
    let workspace = Workspace::new()
        .tool("t", "return (await import('node:fs')).readFileSync('/proc/self/environ', 'latin1')")
        .env("MY_API_KEY", "hunter2")
        // Not every value is a text.
        .env("MY_PASSWORD", OsString::from_vec(b"hunter3-\xff".to_vec()))
        .env("PLAIN", "visible");
    // It is the zygote's, which has only what the engine needs.
    let block = workspace.answer("t", &json!({}));
    assert!(!block.contains("hunter") && block.contains("PATH="), "{block}");
}

#[test]
fn an_extension_stuck_in_a_system_call_fails_at_its_deadline() {
    let workspace = Workspace::new()
        .extension("stuck", "import fs from 'node:fs'; fs.readFileSync('pipe');")
        .tool("works", "return 'yes'");
    std::process::Command::new("mkfifo").arg(workspace.cwd().join("pipe")).status().unwrap();
    workspace.home_file("config.toml", "[extensions.stuck]\nstart-deadline-s = 1\n");
    let list = workspace.list();
    assert_eq!(list["stuck"]["status"], "failed");
    assert_eq!(list["works"]["status"], "running");
}

#[test]
fn signalling_the_own_group_reaches_the_extension_alone() {
    let workspace = Workspace::new().tool(
        "kills",
        "const stat = (await import('node:fs')).readFileSync('/proc/self/stat', 'utf8');\n\
         process.kill(-Number(stat.split(') ')[1].split(' ')[2]), 'SIGUSR1'); return 'still here'",
    );
    let result = workspace.call("kills", &json!({}));
    assert!(result["textResultForLlm"].as_str().unwrap().contains("process.exit(138)"), "{result}");
}

#[test]
fn raw_ops_are_out_of_reach() {
    let workspace = Workspace::new().tool("t", "return typeof Deno[Deno.internal]?.core");
    assert_eq!(workspace.answer("t", &json!({})), "undefined");
}

#[test]
fn debugger_and_engine_flags_are_the_hosts() {
    for call in [
        "(await import('node:inspector')).waitForDebugger()",
        "(await import('node:v8')).setFlagsFromString('--no-opt')",
    ] {
        let workspace = Workspace::new().tool("t", &format!("{call}; return 'done'"));
        let text = workspace.call("t", &json!({}))["textResultForLlm"].to_string();
        assert!(text.contains("not available to extensions"), "{call}: {text}");
    }
}

#[test]
fn a_signal_to_the_program_ends_extensions_and_their_children() {
    use std::io::BufRead;
    let workspace = Workspace::new();
    let pids = workspace.cwd().join("pids");
    let workspace = workspace.tool(
        "spawns",
        &format!(
            "const {{ spawn }} = await import('node:child_process'); const fs = await import('node:fs');\n\
             process.on('exit', () => fs.appendFileSync({pids:?}, 'exit'));\n\
             fs.writeFileSync({pids:?}, spawn('sleep', ['300']).pid + '\\n'); await new Promise(() => {{}})"
        ),
    );
    let mut child = workspace.command(&["call", "spawns"]).spawn().unwrap();
    while !std::fs::read_to_string(&pids).is_ok_and(|text| text.ends_with('\n')) {
        std::thread::sleep(Duration::from_millis(10));
    }
    std::process::Command::new("kill").arg(child.id().to_string()).status().unwrap();
    child.wait().unwrap();
    let lines: Vec<String> = std::io::BufReader::new(std::fs::File::open(&pids).unwrap())
        .lines()
        .map(Result::unwrap)
        .collect();
    assert_eq!(lines[1], "exit");
    until_dead(lines[0].parse().unwrap());
}

#[test]
fn numbers_of_the_hosts_descriptors_reach_no_child_and_no_socket() {
    let workspace = Workspace::new();
    let out = workspace.cwd().join("out");
    let workspace = workspace
        .tool(
            "hands",
            &format!(
                "const {{ spawn, spawnSync }} = await import('node:child_process');\n\
                 const fs = await import('node:fs'); const net = await import('node:net');\n\
                 const own = fs.openSync({out:?}, 'w');\n\
                 const ended = (stdio) => new Promise((resolve) => {{\n\
                   const child = spawn('echo', ['heard'], {{ stdio }});\n\
                   child.on('error', () => resolve('error')); child.on('exit', (code) => resolve(code)); }});\n\
                 const attempt = (what) => {{ try {{ return what(); }} catch {{ return 'error'; }} }};\n\
                 const leaks = [];\n\
                 for (let n = 3; n <= 40; n++) {{\n\
                   if (n === own) continue;\n\
                   const ends = [await ended([n, 'ignore', 'ignore']), await ended(['ignore', n, n]),\n\
                     await ended(['ignore', 'ignore', 'ignore', n]),\n\
                     spawnSync('echo', [], {{ stdio: ['ignore', n, n] }}).error ? 'error' : 'ran',\n\
                     attempt(() => new Deno.Command('echo', {{ stdout: n }}).outputSync().code),\n\
                     attempt(() => typeof new net.Socket({{ fd: n }}))];\n\
                   if (ends.some((end) => end !== 'error')) leaks.push([n, ends]);\n\
                 }}\n\
                 return JSON.stringify({{ leaks, own: await ended(['ignore', own, own]), log: await ended([0, 2, 2]) }})"
            ),
        )
        .tool("stays", "return 'yes'");
    let said: Value = serde_json::from_str(&workspace.answer("hands", &json!({}))).unwrap();
    assert_eq!(said, json!({ "leaks": [], "own": 0, "log": 0 }));
    assert_eq!(std::fs::read_to_string(&out).unwrap(), "heard\n");
    assert_eq!(workspace.answer("stays", &json!({})), "yes");
}
