//! `tenon-bench events`: a stream of events to many extensions.
//!
//! There are two: one as it is, and one with a further subscriber that sleeps. What the others get, and
//! when, must not differ.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use tenon_console::error::CliError;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::DIM;
use tenon_console::output::Progress;
use tenon_console::output::RED;
use tenon_console::output::Table;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::session::EndReason;
use tenon_host::session::ToolCall;

use crate::args::Args;
use crate::args::BenchEvents;
use crate::measured;
use crate::process;
use crate::tenon::Tenon;

/// Events are emitted in bursts this far apart, as deltas of a model's answer come.
const BURST: Duration = Duration::from_millis(5);

/// Counts events and measures how late some of them are.
pub const LISTENER: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
const late = [];
let count = 0, next = 0, disorder = 0, dropped = 0;
const session = await joinSession({ tools: [{
  name: "report_NUMBER",
  description: "x",
  handler: () => {
    late.sort((a, b) => a - b);
    const report = { count, disorder, dropped, p50: late[late.length >> 1] ?? 0, p99: late[Math.floor(late.length * 0.99)] ?? 0 };
    count = next = disorder = dropped = late.length = 0;
    return report;
  },
}] });
session.on("bench.tick", ({ data }) => {
  if (data.number !== next) disorder += 1;
  next = data.number + 1;
  count += 1;
  if (data.isSample || count % 16 === 0) late.push(performance.timeOrigin + performance.now() - data.at);
});
session.on("session.warning", ({ data }) => { dropped += data.count ?? 0; });
"#;

/// Takes the first event and then sleeps, holding its thread.
const SLEEPER: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({});
session.on("bench.tick", () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000));
"#;

/// Parts of the stream. Those with and without the sleeper take turns, so that noise hits both.
const ROUNDS: u32 = 5;

/// One kind of stream.
#[derive(Debug, Serialize)]
struct Stream {
    case: String,
    engine: String,
    subscribers: usize,
    events: u64,
    events_per_second: f64,
    /// Events that did not arrive, over all subscribers that do not sleep.
    lost: u64,
    /// Events that arrived in another order than they were emitted in.
    out_of_order: u64,
    /// How late events arrived, in milliseconds: the median over subscribers and rounds.
    p50_ms: f64,
    p99_ms: f64,
    /// How many cores the session, the zygote and all extensions used.
    cores: f64,
    /// Memory of the session, the zygote and all extensions after every round (PSS, with page tables), in megabytes.
    memory_mb: Vec<f64>,
}

/// What was seen of a stream so far.
struct Run {
    case: &'static str,
    session: Session,
    isolates: Isolates,
    subscribers: usize,
    events: u64,
    seconds: f64,
    cpu_ms: f64,
    reports: Vec<Value>,
    memory: Vec<f64>,
}

pub async fn run(args: &Args, tenon: &Tenon, bench: &BenchEvents) -> Result<ExitCode, CliError> {
    let folder = tempfile::tempdir()?;
    let mut runs = Vec::new();
    for (case, sleeper) in [("all awake", false), ("one sleeps", true)] {
        let _progress = Progress::start("loading extensions ...");
        let isolates = tenon.isolates();
        let folder = folder.path().join(case);
        let session = session(&folder, bench.extensions, sleeper, isolates.clone()).await?;
        // A first round for compilers and caches.
        emit(&session, bench.rate, Duration::from_secs(1)).await;
        reports(&session, bench.extensions).await?;
        let subscribers = bench.extensions + usize::from(sleeper);
        runs.push(Run {
            case,
            session,
            isolates,
            subscribers,
            events: 0,
            seconds: 0.0,
            cpu_ms: 0.0,
            reports: Vec::new(),
            memory: Vec::new(),
        });
    }
    for round in 1..=ROUNDS {
        for run in &mut runs {
            let _progress =
                Progress::start(&format!("streaming, {}, round {round} of {ROUNDS} ...", run.case));
            run.stream(bench).await?;
        }
    }
    let mut streams = Vec::new();
    for run in runs {
        streams.push(run.finish(tenon, bench).await);
    }
    let ratio = streams[1].p50_ms / streams[0].p50_ms;
    if args.json {
        output::json(&json!({ "streams": streams, "latency_ratio": ratio }))?;
    } else {
        print(&streams, ratio);
    }
    let lost: u64 = streams.iter().map(|stream| stream.lost + stream.out_of_order).sum();
    if lost > 0 {
        return Err(CliError::new(format!("{lost} events were lost or out of order")));
    }
    Ok(ExitCode::SUCCESS)
}

impl Run {
    /// One round.
    async fn stream(&mut self, bench: &BenchEvents) -> Result<(), CliError> {
        let (cpu, started) = (self.sum(process::cpu_ms), Instant::now());
        let length = Duration::from_secs(bench.seconds) / ROUNDS;
        self.events += emit(&self.session, bench.rate, length).await;
        self.seconds += started.elapsed().as_secs_f64();
        self.cpu_ms += self.sum(process::cpu_ms) - cpu;
        self.reports.extend(reports(&self.session, bench.extensions).await?);
        self.memory.push(self.sum(process::whole_mb));
        Ok(())
    }

    /// Something of this process, the zygote and the extensions' processes, together.
    fn sum<T: std::iter::Sum>(&self, of: impl Fn(u32) -> T) -> T {
        self.isolates.pids().into_iter().chain([std::process::id()]).map(of).sum()
    }

    async fn finish(self, tenon: &Tenon, bench: &BenchEvents) -> Stream {
        self.session.end(EndReason::Complete).await;
        let numbers = |field: &'static str| {
            self.reports.iter().filter_map(move |report| report[field].as_f64())
        };
        let sum = |field: &'static str| numbers(field).sum::<f64>() as u64;
        Stream {
            case: self.case.to_owned(),
            engine: tenon.engine.name.clone(),
            subscribers: self.subscribers,
            events: self.events,
            events_per_second: self.events as f64 / self.seconds,
            lost: (self.events * bench.extensions as u64).saturating_sub(sum("count")),
            out_of_order: sum("disorder"),
            p50_ms: process::median(numbers("p50").collect()),
            p99_ms: process::median(numbers("p99").collect()),
            cores: self.cpu_ms / self.seconds / 1000.0,
            memory_mb: self.memory,
        }
    }
}

async fn session(
    folder: &Path,
    count: usize,
    sleeper: bool,
    isolates: Isolates,
) -> Result<Session, CliError> {
    let listeners =
        (0..count).map(|n| (format!("listener-{n}"), LISTENER.replace("NUMBER", &n.to_string())));
    let sleeper = sleeper.then(|| ("sleeper".to_owned(), SLEEPER.to_owned()));
    measured::session_in(folder, listeners.chain(sleeper), isolates).await
}

/// Says when how many events are due, at a rate for a time.
pub struct Pacer {
    started: Instant,
    rate: u64,
    length: Duration,
    ticks: tokio::time::Interval,
    is_over: bool,
}

impl Pacer {
    pub fn new(rate: u64, length: Duration) -> Self {
        let ticks = tokio::time::interval(BURST);
        Self { started: Instant::now(), rate, length, ticks, is_over: false }
    }

    /// Waits for the next burst; how many events are due in all by then.
    pub async fn next(&mut self) -> Option<u64> {
        if self.is_over {
            return None;
        }
        self.ticks.tick().await;
        let passed = self.started.elapsed();
        self.is_over = passed >= self.length;
        Some((passed.min(self.length).as_secs_f64() * self.rate as f64) as u64)
    }
}

/// What an event says. How late it is when it is heard counts for every sixteenth, and for those that say so.
pub fn tick(number: u64, now: SystemTime, is_sample: bool) -> Value {
    let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let at = now.as_secs_f64() * 1000.0;
    json!({
        "number": number, "at": at, "isSample": is_sample, "deltaContent": "a few words of text",
    })
}

/// Emits at a rate for a time; how many that were.
pub async fn emit(session: &Session, rate: u64, length: Duration) -> u64 {
    let mut pacer = Pacer::new(rate, length);
    let mut number = 0;
    while let Some(due) = pacer.next().await {
        while number < due {
            session.emit_ephemeral("bench.tick", tick(number, SystemTime::now(), false));
            number += 1;
        }
    }
    number
}

/// What every listener has seen since it was last asked.
pub async fn reports(session: &Session, count: usize) -> Result<Vec<Value>, CliError> {
    // One that sleeps takes its time.
    let _ = tokio::time::timeout(Duration::from_secs(2), session.drained()).await;
    let mut reports = Vec::new();
    for number in 0..count {
        let call = ToolCall::new(format!("report_{number}"), json!({}));
        let outcome = session.call_tool(call).await;
        let outcome = outcome.map_err(|error| CliError::new(error.to_string()))?;
        reports.push(serde_json::from_str(&outcome.result.text_result_for_llm)?);
    }
    Ok(reports)
}

fn print(streams: &[Stream], ratio: f64) {
    let columns = [
        "CASE",
        ">SUBSCRIBERS",
        ">EVENTS/s",
        ">LOST",
        ">P50 ms",
        ">P99 ms",
        ">CORES",
        ">EARLY MB",
        ">LATE MB",
    ];
    let mut table = Table::new(&columns);
    let megabytes =
        |value: Option<&f64>| value.map_or("-".to_owned(), |value| format!("{value:.1}"));
    let plain = anstyle::Style::new();
    for stream in streams {
        table.row(vec![
            (stream.case.clone(), BOLD),
            (stream.subscribers.to_string(), plain),
            (format!("{:.0}", stream.events_per_second), plain),
            (stream.lost.to_string(), if stream.lost > 0 { RED } else { plain }),
            (format!("{:.2}", stream.p50_ms), plain),
            (format!("{:.2}", stream.p99_ms), plain),
            (format!("{:.2}", stream.cores), plain),
            (megabytes(stream.memory_mb.first()), plain),
            (megabytes(stream.memory_mb.last()), plain),
        ]);
    }
    table.print();
    output::line("");
    output::line(format_args!(
        "{DIM}With one that sleeps, events reach the others {ratio:.2} times as late, at p50.{DIM:#}"
    ));
}
