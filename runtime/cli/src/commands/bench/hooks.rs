//! `tenon bench hooks`: a tool call through the hooks of several extensions.
//!
//! It stands beside one JSON-RPC round trip to a node process, with the library and the framing that the
//! public SDK uses. Blocks of calls take turns, so that noise on the machine hits all of them.

use std::path::Path;
use std::process::ExitCode;
use std::process::Stdio;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::isolate::Spare;
use tenon_host::isolate::engine_info;
use tenon_host::session::EndReason;
use tenon_host::session::ToolCall;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::process::Child;
use tokio::process::ChildStdin;
use tokio::process::ChildStdout;

use super::node;
use crate::args::Args;
use crate::args::BenchHooks;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::Progress;
use crate::output::Table;

/// Calls in a block, before the next kind has its turn.
const BLOCK: usize = 250;

/// Blocks before the measurement, for compilers and caches.
const WARM_UP: usize = 2;

/// Answers requests by the SDK's own JSON-RPC library.
const NODE_MODULE: &str = r#"
import rpc from "vscode-jsonrpc/node.js";
const connection = rpc.createMessageConnection(new rpc.StreamMessageReader(process.stdin), new rpc.StreamMessageWriter(process.stdout));
connection.onRequest("call", ({ args }) => ({ textResultForLlm: args.text, resultType: "success" }));
connection.listen();
"#;

const TOOL: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "echo", description: "x", handler: ({ text }) => text }] });
"#;

const HOOKS: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
let calls = 0;
await joinSession({
  hooks: {
    onPreToolUse: ({ toolName }) => { calls += toolName === "echo" ? 1 : 0; },
    onPostToolUse: ({ toolResult }) => { calls += toolResult.textResultForLlm.length; },
  },
});
"#;

/// One measured case.
#[derive(Debug, Clone, Serialize)]
struct Case {
    case: String,
    engine: String,
    calls: usize,
    p50_us: f64,
    p99_us: f64,
    /// How many times less than one round trip to node, at p50.
    than_one_round_trip: Option<f64>,
    /// How many times less than as many round trips to node as this crosses into extensions.
    than_as_many_round_trips: Option<f64>,
    #[serde(skip)]
    crossings: usize,
}

pub async fn run(args: &Args, bench: &BenchHooks) -> Result<ExitCode, CliError> {
    let folder = tempfile::tempdir()?;
    let there = crate::workspace::isolates(Spare::None)?;
    let here = Isolates::in_process(Spare::None);
    let close = session(&folder.path().join("close"), 0, here).await?;
    let plain = session(&folder.path().join("plain"), 0, there.clone()).await?;
    let hooked = session(&folder.path().join("hooked"), bench.extensions, there).await?;
    let mut node = if bench.no_node { None } else { start_node(args, bench) };
    let progress = Progress::start("measuring calls ...");
    let (mut trips, mut calls, mut hooked_calls) = (Vec::new(), Vec::new(), Vec::new());
    let mut close_calls = Vec::new();
    for block in 0..WARM_UP + bench.calls.div_ceil(BLOCK) {
        if block == WARM_UP {
            trips.clear();
            close_calls.clear();
            calls.clear();
            hooked_calls.clear();
        }
        if let Some(node) = &mut node {
            for _ in 0..BLOCK {
                let started = Instant::now();
                node.call().await?;
                trips.push(microseconds(started));
            }
        }
        measure(&close, &mut close_calls).await?;
        measure(&plain, &mut calls).await?;
        measure(&hooked, &mut hooked_calls).await?;
    }
    drop(progress);
    let engine = engine_info().name;
    let trip = (!trips.is_empty()).then(|| Case::new("node, one round trip", "node", trips, 1));
    let hooks = format!("tool call, {n} + {n} hooks", n = bench.extensions);
    let cases = [
        Case::new("tool call, in this process", engine, close_calls, 1),
        Case::new("tool call, no hooks", engine, calls, 1),
        Case::new(&hooks, engine, hooked_calls, 1 + 2 * bench.extensions),
    ]
    .map(|case| case.compare(trip.as_ref()));
    close.end(EndReason::Complete).await;
    plain.end(EndReason::Complete).await;
    hooked.end(EndReason::Complete).await;
    let cases: Vec<_> = trip.into_iter().chain(cases).collect();
    if args.json {
        output::json(&cases)?;
    } else {
        print(&cases);
    }
    Ok(ExitCode::SUCCESS)
}

fn microseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e6
}

/// A block of calls.
async fn measure(session: &Session, times: &mut Vec<f64>) -> Result<(), CliError> {
    for _ in 0..BLOCK {
        let call = ToolCall::new("echo", json!({ "text": "hello" }));
        let started = Instant::now();
        let outcome = session.call_tool(call).await;
        times.push(microseconds(started));
        if !outcome.is_ok_and(|outcome| outcome.result.text_result_for_llm == "hello") {
            return Err(CliError::new("a call brought something else than it should"));
        }
    }
    Ok(())
}

/// A session with the tool, and so many extensions with hooks.
async fn session(folder: &Path, hooks: usize, isolates: Isolates) -> Result<Session, CliError> {
    let sources = (0..hooks).map(|number| (format!("hooks-{number}"), HOOKS.to_owned()));
    let tool = ("tool".to_owned(), TOOL.to_owned());
    super::workspace::session(folder, sources.chain([tool]), isolates).await
}

impl Case {
    fn new(case: &str, engine: &str, mut times: Vec<f64>, crossings: usize) -> Self {
        times.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (times.len() as f64 * share) as usize;
            times.get(place).copied().unwrap_or(f64::NAN)
        };
        Self {
            case: case.to_owned(),
            engine: engine.to_owned(),
            calls: times.len(),
            p50_us: at(0.5),
            p99_us: at(0.99),
            than_one_round_trip: None,
            than_as_many_round_trips: None,
            crossings,
        }
    }

    fn compare(mut self, trip: Option<&Self>) -> Self {
        self.than_one_round_trip = trip.map(|trip| trip.p50_us / self.p50_us);
        let crossings = self.crossings as f64;
        self.than_as_many_round_trips = self.than_one_round_trip.map(|ratio| ratio * crossings);
        self
    }
}

fn print(cases: &[Case]) {
    let columns = ["CASE", "ENGINE", ">P50 us", ">P99 us", ">1 TRIP", ">SAME TRIPS"];
    let mut table = Table::new(&columns);
    let plain = anstyle::Style::new();
    for case in cases {
        let times = |ratio: Option<f64>| match ratio {
            Some(ratio) => format!("{ratio:.1}x"),
            None => "1".to_owned(),
        };
        table.row(vec![
            (case.case.clone(), BOLD),
            (case.engine.clone(), DIM),
            (format!("{:.1}", case.p50_us), plain),
            (format!("{:.1}", case.p99_us), plain),
            (times(case.than_one_round_trip), plain),
            (times(case.than_as_many_round_trips), plain),
        ]);
    }
    table.print();
    output::line("");
    output::line(format_args!(
        "{DIM}1 TRIP: how many times less than one JSON-RPC round trip to a node process over stdio, at \
         p50.\nSAME TRIPS: than as many round trips as the call crosses into extensions.\nIsolates are in a \
         process of their own, except where it says otherwise.{DIM:#}"
    ));
}

fn start_node(args: &Args, bench: &BenchHooks) -> Option<Node> {
    let home = crate::workspace::home(args).ok()?;
    let _progress = Progress::start("starting node ...");
    match Node::start(bench.sdk.as_deref(), &home) {
        Ok(node) => Some(node),
        Err(reason) => {
            CliError::new(format!("node was not measured: {reason}")).print();
            None
        }
    }
}

/// A node process that answers JSON-RPC requests with the framing of the SDK.
struct Node {
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Killed when it is dropped.
    _process: Child,
}

impl Node {
    fn start(sdk: Option<&Path>, home: &Path) -> Result<Self, String> {
        let folder = node::sdk_folder(sdk, home)?;
        let module = folder.join("tenon-bench-rpc.mjs");
        std::fs::write(&module, NODE_MODULE).map_err(|error| error.to_string())?;
        let mut process = tokio::process::Command::new("node")
            .arg(&module)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("node cannot be started: {error}"))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("node has no pipes".to_owned());
        };
        Ok(Self { input, output: BufReader::new(output), next: 0, _process: process })
    }

    async fn call(&mut self) -> Result<(), CliError> {
        self.next += 1;
        let params = json!({ "name": "echo", "args": { "text": "hello" } });
        let request =
            json!({ "jsonrpc": "2.0", "id": self.next, "method": "call", "params": params });
        let body = request.to_string();
        let message = format!("Content-Length: {}\r\n\r\n{body}", body.len());
        self.input.write_all(message.as_bytes()).await?;
        self.input.flush().await?;
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line).await? == 0 {
                return Err(CliError::new("the node process ended"));
            }
            match line.trim() {
                "" => break,
                header => {
                    if let Some(value) = header.strip_prefix("Content-Length: ") {
                        length = value.parse().unwrap_or(0);
                    }
                }
            }
        }
        let mut body = vec![0; length];
        self.output.read_exact(&mut body).await?;
        let answer: Value = serde_json::from_slice(&body)?;
        if answer["result"]["textResultForLlm"] != "hello" {
            return Err(CliError::new(format!("node answered {answer}")));
        }
        Ok(())
    }
}
