//! The host as a program that embeds it uses it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::Arguments;
use libtest_mimic::Failed;
use libtest_mimic::Trial;
use serde_json::Value;
use serde_json::json;
use tenon_host::CallError;
use tenon_host::Host;
use tenon_host::HostOptions;
use tenon_host::Status;
use tenon_host::isolate::Spare;
use tenon_host::tool::ResultType;
use tenon_host::tool::ToolResult;

fn main() -> ExitCode {
    // Before libtest starts its threads.
    tenon_host::isolate::init_engine();
    let tests = vec![
        test("calls_in_one_extension_run_side_by_side", side_by_side),
        test("dropping_a_call_fires_the_handlers_signal", cancellation),
        test("an_extension_that_ends_takes_its_calls_along_and_nobody_elses", one_ends),
        test("a_blocked_extension_does_not_delay_another", blocked),
        test("the_event_loop_runs_between_calls", between_calls),
        test("stopping_ends_servers_and_frees_their_ports", ports),
        test("a_spare_is_used_and_replaced", spare),
        test("joining_again_replaces_the_tools", joining_again),
        test("many_hosts_in_one_process_do_not_share_anything", two_hosts),
    ];
    libtest_mimic::run(&Arguments::from_args(), tests).exit_code()
}

fn test<F>(name: &str, body: fn() -> F) -> Trial
where
    F: Future<Output = ()> + 'static,
{
    Trial::test(name, move || {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(2).enable_all().build().map_err(Failed::from)?;
        runtime.block_on(body());
        Ok(())
    })
}

/// A workspace with the given extensions, each written as the array of its tools.
struct Workspace(tempfile::TempDir);

impl Workspace {
    fn new(extensions: &[(&str, &str)]) -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        for (name, tools) in extensions {
            let source = format!(
                "import {{ joinSession }} from '@github/copilot-sdk/extension';\n\
                 const session = await joinSession({{ tools: [{tools}] }});\n"
            );
            workspace.write(name, &source);
        }
        workspace
    }

    fn write(&self, name: &str, source: &str) {
        let folder = self.0.path().join(".github/extensions").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("extension.mjs"), source).unwrap();
    }

    async fn load(&self, spare: Spare) -> Host {
        let host = self.host(spare);
        host.load().await;
        for info in host.list() {
            assert_eq!(info.status, Status::Running, "{:?}", info.error);
        }
        host
    }

    fn host(&self, spare: Spare) -> Host {
        let cwd = std::fs::canonicalize(self.0.path()).unwrap();
        Host::new(HostOptions {
            home: cwd.join("home"),
            cwd,
            user_folders: Vec::new(),
            extension_folders: Vec::new(),
            trusted: true,
            spare,
        })
        .unwrap()
    }
}

async fn answer(host: &Host, tool: &str, args: Value) -> String {
    let result = host.call_tool(tool, args).await.unwrap();
    assert_eq!(result.result_type, ResultType::Success, "{result:?}");
    result.text_result_for_llm
}

async fn side_by_side() {
    let workspace = Workspace::new(&[(
        "pair",
        "{ name: 'waits', handler: () => new Promise((resolve) => globalThis.open = resolve) }, \
         { name: 'opens', handler: () => { globalThis.open('opened'); return 'done'; } }",
    )]);
    let host = workspace.load(Spare::None).await;
    let waiting = tokio::spawn({
        let host = host.clone();
        async move { answer(&host, "waits", json!({})).await }
    });
    // Fails as long as the first call has not arrived.
    while host.call_tool("opens", json!({})).await.unwrap().result_type != ResultType::Success {}
    assert_eq!(waiting.await.unwrap(), "opened");
    host.stop().await;
}

async fn cancellation() {
    let workspace = Workspace::new(&[]);
    workspace.write(
        "cancels",
        "import { joinSession } from '@github/copilot-sdk/extension';\n\
         const started = Promise.withResolvers();\nconst aborted = Promise.withResolvers();\n\
         await joinSession({ tools: [\n\
           { name: 'waits', handler: (args, { signal }) => new Promise(() => {\n\
               signal.addEventListener('abort', () => aborted.resolve(`${signal.reason.name}: ${signal.reason.message}`));\n\
               started.resolve('started'); }) },\n\
           { name: 'started', handler: () => started.promise },\n\
           { name: 'aborted', handler: () => aborted.promise } ] });\n",
    );
    let host = workspace.load(Spare::None).await;
    let call = tokio::spawn({
        let host = host.clone();
        async move { host.call_tool("waits", json!({})).await }
    });
    assert_eq!(answer(&host, "started", json!({})).await, "started");
    call.abort();
    assert_eq!(answer(&host, "aborted", json!({})).await, "AbortError: the call was cancelled");
    host.stop().await;
}

async fn one_ends() {
    let workspace = Workspace::new(&[
        (
            "ends",
            "{ name: 'hangs', handler: () => new Promise(() => {}) }, { name: 'exits', handler: () => process.exit(7) }",
        ),
        (
            "stays",
            "{ name: 'slow', handler: () => new Promise((resolve) => setTimeout(() => resolve('whole'), 200)) }",
        ),
    ]);
    let host = workspace.load(Spare::None).await;
    // Polled in this order, so the calls are made in this order.
    let (hanging, slow, exited) = tokio::join!(
        host.call_tool("hangs", json!({})),
        host.call_tool("slow", json!({})),
        host.call_tool("exits", json!({})),
    );
    let text = |result: Result<ToolResult, CallError>| result.unwrap().text_result_for_llm;
    assert!(text(exited).contains("process.exit(7)"));
    assert!(text(hanging).contains("ended before hangs returned"));
    assert_eq!(text(slow), "whole");
    let ended = &host.find("ends")[0];
    assert_eq!((ended.status, ended.tools.len()), (Status::Failed, 0));
    assert!(host.call_tool("exits", json!({})).await.is_err());
    host.stop().await;
}

async fn blocked() {
    let workspace = Workspace::new(&[
        ("blocks", "{ name: 'spins', handler: () => { for (;;) {} } }"),
        ("works", "{ name: 'quick', handler: () => 'here' }"),
    ]);
    let host = workspace.load(Spare::None).await;
    let others = async {
        for _ in 0..10 {
            assert_eq!(answer(&host, "quick", json!({})).await, "here");
        }
        // Stopping ends even the one that spins.
        host.stop().await;
    };
    let (spinning, ()) = tokio::join!(host.call_tool("spins", json!({})), others);
    assert_eq!(spinning.unwrap().result_type, ResultType::Failure);
}

async fn between_calls() {
    let workspace =
        Workspace::new(&[("ticks", "{ name: 'ticked', handler: () => globalThis.tick }")]);
    workspace.write(
        "ticks",
        "import { joinSession } from '@github/copilot-sdk/extension';\n\
         await joinSession({ tools: [{ name: 'first_tick', handler: () => tick }] });\n\
         const tick = new Promise((resolve) => setTimeout(() => resolve('ticked'), 20));\n",
    );
    let host = workspace.load(Spare::None).await;
    assert_eq!(answer(&host, "first_tick", json!({})).await, "ticked");
    host.stop().await;
}

async fn ports() {
    let workspace = Workspace::new(&[]);
    workspace.write(
        "server",
        "import { joinSession } from '@github/copilot-sdk/extension';\nimport http from 'node:http';\n\
         const server = http.createServer((_, response) => response.end('x'));\n\
         await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));\n\
         await joinSession({ tools: [{ name: 'port', handler: () => server.address().port }] });\n",
    );
    let host = workspace.load(Spare::None).await;
    let port: u16 = answer(&host, "port", json!({})).await.parse().unwrap();
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    host.stop().await;
    std::net::TcpListener::bind(("127.0.0.1", port)).expect("the port is free again");
}

async fn spare() {
    let workspace = Workspace::new(&[]);
    let host = workspace.host(Spare::Keep);
    host.wait_for_spare().await;
    workspace.write(
        "late",
        "import { joinSession } from '@github/copilot-sdk/extension';\nimport { createHash } from 'node:crypto';\n\
         await joinSession({ tools: [{ name: 'hash', handler: () => \
           [createHash('sha256').update('x').digest('hex').slice(0, 8), process.cwd(), process.argv[1]] }] });\n",
    );
    host.load().await;
    let info = &host.list()[0];
    assert!(info.ready.unwrap().from_spare);
    let seen: Vec<String> = serde_json::from_str(&answer(&host, "hash", json!({})).await).unwrap();
    let cwd = std::fs::canonicalize(workspace.0.path()).unwrap();
    assert_eq!(seen[0], "2d711642");
    assert_eq!(Path::new(&seen[1]), cwd);
    assert_eq!(Path::new(&seen[2]), cwd.join(".github/extensions/late/extension.mjs"));
    // The next one is on its way.
    host.wait_for_spare().await;
    host.stop().await;
}

async fn joining_again() {
    let workspace = Workspace::new(&[(
        "twice",
        "{ name: 'old', handler: async () => { await joinSession({ tools: [{ name: 'young', handler: () => 'y' }] }); return 'o'; } }",
    )]);
    let host = workspace.load(Spare::None).await;
    assert_eq!(answer(&host, "old", json!({})).await, "o");
    assert_eq!(answer(&host, "young", json!({})).await, "y");
    assert!(host.call_tool("old", json!({})).await.is_err());
    host.stop().await;
}

async fn two_hosts() {
    let tool = "{ name: 'where', handler: () => process.cwd() + ' ' + process.env.SESSION_ID }";
    let (one, two) = (Workspace::new(&[("same", tool)]), Workspace::new(&[("same", tool)]));
    let (first, second) = (one.load(Spare::None).await, two.load(Spare::None).await);
    let (a, b) =
        (answer(&first, "where", json!({})).await, answer(&second, "where", json!({})).await);
    assert!(a.starts_with(&*std::fs::canonicalize(one.0.path()).unwrap().to_string_lossy()), "{a}");
    assert_ne!(a.split(' ').nth(1), b.split(' ').nth(1));
    first.stop().await;
    second.stop().await;
}
