//! The host as a program that embeds it uses it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "tests")]

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use libtest_mimic::Arguments;
use libtest_mimic::Failed;
use libtest_mimic::Trial;
use serde_json::Value;
use serde_json::json;
use tenon_bench::threads;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::Timing;
use tenon_host::events::Filter;
use tenon_host::front::AgentError;
use tenon_host::front::AgentPrompt;
use tenon_host::front::Answer;
use tenon_host::front::Decision;
use tenon_host::front::Front;
use tenon_host::session::Agent;
use tenon_host::session::CallError;
use tenon_host::session::EndReason;
use tenon_host::session::Message;
use tenon_host::session::ToolCall;
use tenon_host::session::Turn;
use tenon_host::tool::ResultType;
use tenon_host::tool::ToolResult;
use tenon_isolate::Launcher;
use tenon_isolate::floor;
use tenon_protocol::permission::PermissionRequest;

/// The name under which this program is the one that `tenon-bench` compares processes with.
const IN_PROCESS: &str = "tenon-in-process";

fn main() -> ExitCode {
    let name = std::env::args_os().next();
    if name.as_deref().map(Path::new).and_then(Path::file_name) == Some(OsStr::new(IN_PROCESS)) {
        let engine = threads::Engine {
            init: tenon_isolate::init_engine,
            launcher: || Arc::new(Launcher),
            bare_isolate: |idle| floor::bare_isolate(idle),
            thread_cpu_time: floor::thread_cpu_time,
        };
        // SAFETY: there is one thread.
        return unsafe { threads::main(engine) };
    }
    // SAFETY: this is the first statement of the program; there is one thread.
    unsafe { std::env::set_var("EMBEDDING_TEST_TOKEN", "secret") };
    // Before libtest starts its threads.
    tenon_isolate::init_engine();
    let tests = vec![
        test("calls_in_one_extension_run_side_by_side", side_by_side),
        test("dropping_a_call_fires_the_handlers_signal", cancellation),
        test("an_extension_that_ends_takes_its_calls_along_and_nobody_elses", one_ends),
        test("a_blocked_extension_does_not_delay_another", blocked),
        test("the_event_loop_runs_between_calls", between_calls),
        test("stopping_ends_servers_and_frees_their_ports", ports),
        test("joining_again_replaces_the_tools", joining_again),
        test("many_hosts_in_one_process_do_not_share_anything", two_hosts),
        test("an_agent_that_does_not_stop_is_not_listened_to_any_more", stubborn_agent),
        test("a_session_that_is_dropped_ends_its_extensions", dropped),
        test("a_session_can_end_while_the_person_is_asked_about_an_extension", ended_while_asking),
        test("benchmarks_compare_processes_with_threads_of_a_program", benchmarks),
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
        // A busy machine must not reach a limit that no test is about.
        let home = workspace.0.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let config = "[extensions.\"*\"]\nstart-deadline-s = 600\n";
        std::fs::write(home.join("config.toml"), config).unwrap();
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

    async fn load(&self) -> Session {
        let session = self.session();
        session.load().await;
        for info in session.list() {
            assert_eq!(info.status, Status::Running, "{:?}", info.error);
        }
        session
    }

    fn session(&self) -> Session {
        let cwd = std::fs::canonicalize(self.0.path()).unwrap();
        let home = cwd.join("home");
        let options = SessionOptions {
            trusted: true,
            isolates: Isolates::in_process(Arc::new(Launcher)),
            // One that ends stays away for as long as a test takes.
            timing: Timing { restart_after: Duration::from_secs(3600), ..Timing::default() },
            ..SessionOptions::new(cwd, home)
        };
        Session::new(options).unwrap()
    }
}

async fn answer(session: &Session, tool: &str, args: Value) -> String {
    let result = session.call_tool(ToolCall::new(tool, args)).await.unwrap().result;
    assert_eq!(result.result_type, ResultType::Success, "{result:?}");
    result.text_result_for_llm
}

async fn call(session: &Session, tool: &str) -> Result<ToolResult, CallError> {
    session.call_tool(ToolCall::new(tool, json!({}))).await.map(|outcome| outcome.result)
}

async fn side_by_side() {
    let workspace = Workspace::new(&[(
        "pair",
        "{ name: 'waits', handler: () => new Promise((resolve) => globalThis.open = resolve) }, \
         { name: 'opens', handler: () => { globalThis.open('opened'); return 'done'; } }",
    )]);
    let session = workspace.load().await;
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { answer(&session, "waits", json!({})).await }
    });
    // Fails as long as the first call has not arrived.
    while call(&session, "opens").await.unwrap().result_type != ResultType::Success {}
    assert_eq!(waiting.await.unwrap(), "opened");
    session.end(EndReason::Complete).await;
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
    let session = workspace.load().await;
    let call = tokio::spawn({
        let session = session.clone();
        async move { call(&session, "waits").await }
    });
    assert_eq!(answer(&session, "started", json!({})).await, "started");
    call.abort();
    assert_eq!(answer(&session, "aborted", json!({})).await, "AbortError: the call was cancelled");
    session.end(EndReason::Complete).await;
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
    let session = workspace.load().await;
    // Polled in this order, so the calls are made in this order.
    let (hanging, slow, exited) =
        tokio::join!(call(&session, "hangs"), call(&session, "slow"), call(&session, "exits"),);
    let text = |result: Result<ToolResult, CallError>| result.unwrap().text_result_for_llm;
    assert!(text(exited).contains("process.exit(7)"));
    assert!(text(hanging).contains("ended before hangs returned"));
    assert_eq!(text(slow), "whole");
    let ended = &session.find("ends")[0];
    assert_eq!((ended.status, ended.tools.len()), (Status::Failed, 0));
    assert!(call(&session, "exits").await.is_err());
    session.end(EndReason::Complete).await;
}

async fn blocked() {
    let workspace = Workspace::new(&[
        ("blocks", "{ name: 'spins', handler: () => { for (;;) {} } }"),
        ("works", "{ name: 'quick', handler: () => 'here' }"),
    ]);
    let session = workspace.load().await;
    let others = async {
        for _ in 0..10 {
            assert_eq!(answer(&session, "quick", json!({})).await, "here");
        }
        // Stopping ends even the one that spins.
        session.end(EndReason::Complete).await;
    };
    let (spinning, ()) = tokio::join!(call(&session, "spins"), others);
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
    let session = workspace.load().await;
    assert_eq!(answer(&session, "first_tick", json!({})).await, "ticked");
    session.end(EndReason::Complete).await;
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
    let session = workspace.load().await;
    let port: u16 = answer(&session, "port", json!({})).await.parse().unwrap();
    std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    session.end(EndReason::Complete).await;
    // One that does not get a processor is not waited for, and ends a little later.
    while std::net::TcpListener::bind(("127.0.0.1", port)).is_err() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn joining_again() {
    let workspace = Workspace::new(&[(
        "twice",
        "{ name: 'old', handler: async () => { await joinSession({ tools: [{ name: 'young', handler: () => 'y' }] }); return 'o'; } }",
    )]);
    let session = workspace.load().await;
    assert_eq!(answer(&session, "old", json!({})).await, "o");
    assert_eq!(answer(&session, "young", json!({})).await, "y");
    assert!(call(&session, "old").await.is_err());
    session.end(EndReason::Complete).await;
}

async fn two_hosts() {
    let tool = "{ name: 'where', handler: () => process.cwd() + ' ' + process.env.SESSION_ID }";
    let (one, two) = (Workspace::new(&[("same", tool)]), Workspace::new(&[("same", tool)]));
    let (first, second) = (one.load().await, two.load().await);
    let (a, b) =
        (answer(&first, "where", json!({})).await, answer(&second, "where", json!({})).await);
    assert!(a.starts_with(&*std::fs::canonicalize(one.0.path()).unwrap().to_string_lossy()), "{a}");
    assert_ne!(a.split(' ').nth(1), b.split(' ').nth(1));
    first.end(EndReason::Complete).await;
    second.end(EndReason::Complete).await;
}

/// Never stops by itself, whatever it is told.
struct Stubborn;

#[async_trait]
impl Agent for Stubborn {
    async fn prompt(
        &self,
        _turn: Arc<Turn>,
        _prompt: Arc<AgentPrompt>,
    ) -> Result<Answer, AgentError> {
        std::future::pending().await
    }

    fn cancel(&self) {}
}

async fn stubborn_agent() {
    let workspace = Workspace::new(&[]);
    let cwd = std::fs::canonicalize(workspace.0.path()).unwrap();
    let options = SessionOptions {
        agent: Some(Arc::new(Stubborn)),
        ..SessionOptions::new(cwd.clone(), cwd.join("home"))
    };
    let session = Session::new(options).unwrap();
    let mut filter = Filter::default();
    filter.add("assistant.turn_start");
    let begun = session.subscribe("test", filter);
    session.send(Message::new("work")).unwrap();
    begun.next().await;
    session.abort("user_initiated");
    session.idle().await;
    session.end(EndReason::Complete).await;
}

async fn dropped() {
    let workspace = Workspace::new(&[("a", "{ name: 't', handler: () => 'here' }")]);
    workspace.write(
        "b",
        "import { joinSession } from '@github/copilot-sdk/extension';\n\
         const session = await joinSession({});\n\
         session.on(() => {});\n\
         setInterval(() => {}, 10);\n",
    );
    let session = workspace.load().await;
    assert_eq!(answer(&session, "t", json!({})).await, "here");
    let named = |name: &str| {
        let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        let name = format!("{name}\n");
        threads
            .filter(|it| std::fs::read_to_string(it.path().join("comm")).is_ok_and(|n| n == name))
            .count()
    };
    assert_eq!(named("project:a") + named("project:b"), 2);
    drop(session);
    // Nothing says when a thread is gone but its being gone.
    while named("project:a") + named("project:b") > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Says when it was asked, and never answers.
struct Silent(Arc<tokio::sync::Notify>);

#[async_trait]
impl Front for Silent {
    async fn request_permission(&self, _request: &PermissionRequest) -> Option<Decision> {
        self.0.notify_one();
        std::future::pending().await
    }
}

async fn ended_while_asking() {
    let workspace = Workspace::new(&[]);
    workspace.write(
        "wants",
        "import { joinSession } from '@github/copilot-sdk/extension';\n\
         await joinSession({ requestedEnvironmentVariables: ['EMBEDDING_TEST_TOKEN'] });\n",
    );
    let cwd = std::fs::canonicalize(workspace.0.path()).unwrap();
    let asked = Arc::new(tokio::sync::Notify::new());
    let options = SessionOptions {
        trusted: true,
        isolates: Isolates::in_process(Arc::new(Launcher)),
        front: Some(Arc::new(Silent(asked.clone()))),
        ..SessionOptions::new(cwd.clone(), cwd.join("home"))
    };
    let session = Session::new(options).unwrap();
    let loading = tokio::spawn({
        let session = session.clone();
        async move { session.load().await }
    });
    asked.notified().await;
    session.end(EndReason::UserExit).await;
    loading.await.unwrap();
    assert_eq!(session.list()[0].status, Status::Failed);
}

async fn benchmarks() {
    let folder = tempfile::tempdir().unwrap();
    let tenon = folder.path().join("tenon");
    symlink(tenon_tests::tenon(), &tenon).unwrap();
    symlink(std::env::current_exe().unwrap(), folder.path().join(IN_PROCESS)).unwrap();
    let workspace = tenon_tests::Workspace::new();
    let bench = |what: &[&str]| {
        let common: &[&str] = &["--in-process", "--no-node", "--json"];
        workspace.bench(&tenon, &[what, common].concat()).json()
    };
    let names = |of: &Value, field: &str| -> Vec<String> {
        let of = of.as_array().unwrap().iter();
        of.map(|it| it[field].as_str().unwrap().to_owned()).collect()
    };

    let report = bench(&["--repetitions", "1", "--only", "call,compute"]);
    let expected = [
        "Tenon",
        "Tenon, a thread in process",
        "ping-pong of the same bytes",
        // With 64 KB of arguments, through hooks, and computing.
        "Tenon",
        "Tenon",
        "Tenon",
        "Tenon, a thread in process",
    ];
    assert_eq!(names(&report["figures"], "case"), expected);
    for figure in report["figures"].as_array().unwrap() {
        assert!(figure["median"].as_f64().unwrap() > 0.0, "{figure}");
    }

    let report = bench(&["start", "--count", "2"]);
    let expected = [
        "extension, five modules",
        "the same in a sandbox",
        "extension without imports",
        "five modules, a thread in process",
        "bare isolate, no platform",
    ];
    assert_eq!(names(&report["measurements"], "case"), expected);
    for measured in report["measurements"].as_array().unwrap() {
        assert_eq!(measured["count"], 2, "{measured}");
        assert!(measured["ready_ms"].as_f64().unwrap() > 0.0, "{measured}");
    }
    let missing = report["missing"].as_array().unwrap();
    assert_eq!(missing.len(), 1, "only the node processes: {missing:?}");
}
