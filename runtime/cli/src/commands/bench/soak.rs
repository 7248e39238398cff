//! `tenon bench soak`: everything at once for a long time, with faults; then what was lost, and what is left.
//!
//! One session with many extensions is called all the time, hears events, and has its files saved anew. Beside
//! it agents come and go, half of them killed. Extensions misbehave in turn, and in the first fifth of the time
//! the process they live in is killed now and then. After that it lives on, so that its memory can be followed.

mod agents;
mod faults;
mod verdict;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use tenon_host::isolate::Spare;
use tenon_host::isolate::engine_info;

use self::agents::Agents;
use self::faults::Faults;
use self::verdict::Report;
use self::verdict::Sample;
use self::verdict::Settled;
use super::events;
use super::load::Holdings;
use super::load::Load;
use super::process;
use super::stage;
use super::stage::Setting;
use super::stage::Stage;
use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::Bar;

/// `tenon bench soak`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  tenon bench soak
  tenon bench soak --seconds 60 --extensions-count 10 --json

Exits with 1 if a call was lost, or something is left.")]
pub struct BenchSoak {
    /// For how long
    #[arg(long, default_value_t = 600)]
    pub seconds: u64,
    /// How many extensions there are
    #[arg(long = "extensions-count", value_name = "N", default_value_t = 50)]
    pub extensions: usize,
}

/// Of the whole time, the part in which the isolates' process is killed.
const KILLING: f64 = 0.2;

/// How far apart such kills are, of the whole time.
const BETWEEN_KILLS: f64 = 0.05;

/// Events per second.
const RATE: u64 = 500;

/// Pauses between saves of a file, faults, and agents.
const BETWEEN_SAVES: Duration = Duration::from_millis(300);
const BETWEEN_FAULTS: Duration = Duration::from_secs(4);

/// Samples of memory, threads and files over the whole time.
const SAMPLES: u32 = 60;

/// The least time that soaking makes sense for: faults need theirs.
const LEAST_SECONDS: u64 = 20;

/// Extensions that misbehave end soon, and all have time to start on a machine that is busy with them.
const CONFIG: &str = "[extensions.\"*\"]\nstart-deadline-s = 60\n\
    [extensions.\"folder:culprit\"]\ncpu-ms = 1500\nheap-mb = 96\n";

/// How often things happened.
#[derive(Debug, Default)]
struct Counts {
    events: AtomicU64,
    reloads: AtomicU64,
    kills: AtomicU64,
}

pub async fn run(args: &Args, bench: &BenchSoak) -> Result<ExitCode, CliError> {
    let report = soak(bench).await?;
    if args.json {
        output::json(&report)?;
    } else {
        verdict::print(&report);
    }
    Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An extension with a tool, hooks and an ear for events. The file is saved with another answer.
fn source(number: usize, answer: u64) -> String {
    // Hooks of every tenth are asked about every call of every other.
    let hooks = if number.is_multiple_of(10) {
        "hooks: { onPreToolUse: () => {}, onPostToolUse: () => {} },"
    } else {
        ""
    };
    format!(
        "import {{ joinSession }} from \"@github/copilot-sdk/extension\";\n\
         import fs from \"node:fs\";\nimport path from \"node:path\";\n\
         let heard = 0;\n\
         const session = await joinSession({{ {hooks} tools: [{{ name: \"{}\", description: \"x\",\n\
           handler: () => `{answer}` }}] }});\n\
         session.on(\"bench.tick\", () => {{ heard += 1; }});\n",
        tool(number)
    )
}

fn tool(number: usize) -> String {
    format!("tool_{number}")
}

fn name(number: usize) -> String {
    format!("extension-{number}")
}

async fn soak(bench: &BenchSoak) -> Result<Report, CliError> {
    let (count, seconds) = (bench.extensions.max(2), bench.seconds.max(LEAST_SECONDS));
    let length = Duration::from_secs(seconds);
    let agents = Agents::new()?;
    let sources = (0..count).map(|number| (name(number), source(number, 0)));
    let culprit = (faults::NAME.to_owned(), faults::SOURCE.to_owned());
    let setting = Setting {
        config: CONFIG,
        watch: true,
        record: true,
        spare: Spare::Keep,
        restart_after: Some(Duration::from_millis(200)),
        ..Setting::default()
    };
    let stage = Arc::new(Stage::open(sources.chain([culprit]), setting).await?);
    let tools: Vec<String> = (0..count).map(tool).collect();
    let load = Load::start(&stage.session, &tools);
    let counts = Arc::new(Counts::default());
    let began = Instant::now();
    let mut work = tokio::task::JoinSet::new();
    work.spawn(emit(stage.clone(), counts.clone(), began, length));
    work.spawn(save(stage.clone(), counts.clone(), count, began, length));
    work.spawn(kill(stage.clone(), counts.clone(), count, began, length));
    let faults = Arc::new(Faults::default());
    work.spawn(misbehave(stage.clone(), faults.clone(), began, length));
    let agents = Arc::new(agents);
    let coming = agents.clone();
    work.spawn(async move { coming.come_and_go(began, length).await });
    let samples =
        watch(&stage, &load, &counts, &faults, &agents, (began, length), &mut work).await?;
    while let Some(done) = work.join_next().await {
        done.map_err(|error| CliError::new(error.to_string()))??;
    }
    let calls = load.stop().await?;
    let settled = settle(&stage, &samples).await;
    let is_back =
        stage::until("all extensions run", || stage.all_run(count + 1, &[])).await.is_ok();
    let stage = Arc::into_inner(stage).ok_or_else(|| CliError::new("the session is still used"))?;
    let hosts = stage.isolates.pids();
    stage.end().await?;
    let processes_left =
        agents.left().await + hosts.iter().filter(|&&host| stage::is_alive(host)).count();
    let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let engine = engine_info();
    Ok(Report::new(Settled {
        engine: format!("{} {}", engine.name, engine.version),
        extensions: count,
        seconds: began.elapsed().as_secs_f64(),
        calls,
        events: read(&counts.events),
        reloads: read(&counts.reloads),
        host_kills: read(&counts.kills),
        faults: faults.counts(),
        agents: agents.ended(),
        agents_killed: agents.killed(),
        agents_failed: agents.failures(),
        samples,
        after: settled,
        is_back,
        processes_left,
    }))
}

fn is_time(began: Instant, length: Duration) -> bool {
    began.elapsed() < length
}

async fn emit(
    stage: Arc<Stage>,
    counts: Arc<Counts>,
    began: Instant,
    length: Duration,
) -> Result<(), CliError> {
    while is_time(began, length) {
        let sent = events::emit(&stage.session, RATE, Duration::from_secs(1)).await;
        counts.events.fetch_add(sent, Ordering::Relaxed);
    }
    Ok(())
}

/// Saves one extension after the other, and waits until the new version serves.
async fn save(
    stage: Arc<Stage>,
    counts: Arc<Counts>,
    count: usize,
    began: Instant,
    length: Duration,
) -> Result<(), CliError> {
    let mut number = 0;
    while is_time(began, length) {
        let extension = number % count;
        let answer = number as u64 + 1;
        stage.write(&name(extension), &source(extension, answer))?;
        stage::until_async(&format!("save {number} serves"), || async {
            let result = stage::call(&stage.session, &tool(extension)).await;
            result.is_ok_and(|result| result.text_result_for_llm == answer.to_string())
        })
        .await?;
        counts.reloads.fetch_add(1, Ordering::Relaxed);
        number += 1;
        tokio::time::sleep(BETWEEN_SAVES).await;
    }
    Ok(())
}

/// Kills the process of the isolates in the first part of the time, by two signals in turn.
async fn kill(
    stage: Arc<Stage>,
    counts: Arc<Counts>,
    count: usize,
    began: Instant,
    length: Duration,
) -> Result<(), CliError> {
    while is_time(began, length.mul_f64(KILLING)) {
        tokio::time::sleep(length.mul_f64(BETWEEN_KILLS)).await;
        let number = counts.kills.fetch_add(1, Ordering::Relaxed);
        let signal = if number.is_multiple_of(2) { libc::SIGSEGV } else { libc::SIGKILL };
        let hosts = stage.isolates.pids();
        for &host in &hosts {
            stage::kill(host, signal).await?;
        }
        // The culprit may be about to be started again for a fault of its own.
        stage::until("extensions are back", || stage.running(&hosts) >= count).await?;
    }
    Ok(())
}

async fn misbehave(
    stage: Arc<Stage>,
    faults: Arc<Faults>,
    began: Instant,
    length: Duration,
) -> Result<(), CliError> {
    while is_time(began, length) {
        faults.next(&stage).await?;
        tokio::time::sleep(BETWEEN_FAULTS).await;
    }
    Ok(())
}

/// Looks at the processes now and then until the time is over, or something fails.
async fn watch(
    stage: &Stage,
    load: &Load,
    counts: &Counts,
    faults: &Faults,
    agents: &Agents,
    (began, length): (Instant, Duration),
    work: &mut tokio::task::JoinSet<Result<(), CliError>>,
) -> Result<Vec<Sample>, CliError> {
    let mut bar = Bar::new(SAMPLES as usize);
    let mut samples = Vec::new();
    while is_time(began, length) {
        bar.step(&format!(
            "{} calls, {} reloads, {} faults, {} agents",
            load.sent(),
            counts.reloads.load(Ordering::Relaxed),
            faults.counts().values().sum::<u64>(),
            agents.ended()
        ));
        tokio::select! {
            () = tokio::time::sleep(length / SAMPLES) => samples.push(sample(stage, began)),
            Some(done) = work.join_next() => {
                // Something that ends before its time has failed, or its time is the first part.
                done.map_err(|error| CliError::new(error.to_string()))??;
            }
        }
    }
    Ok(samples)
}

fn sample(stage: &Stage, began: Instant) -> Sample {
    let hosts = stage.isolates.pids();
    let add = |sum: Holdings, pid: &u32| {
        let more = Holdings::of(*pid);
        Holdings {
            memory_mb: sum.memory_mb + more.memory_mb,
            threads: sum.threads + more.threads,
            files: sum.files + more.files,
        }
    };
    Sample {
        at_s: began.elapsed().as_secs_f64(),
        session: Holdings::of(std::process::id()),
        resident_mb: hosts
            .iter()
            .chain([&std::process::id()])
            .map(|&pid| process::resident_mb(pid))
            .sum(),
        isolates: hosts.iter().fold(Holdings::default(), add),
        hosts: hosts.len(),
    }
}

/// Waits until both processes hold no more than they did in the middle, or for some time.
async fn settle(stage: &Stage, samples: &[Sample]) -> Sample {
    let began = Instant::now();
    let least = verdict::least_held(samples);
    loop {
        let now = sample(stage, began);
        let is_settled = least.as_ref().is_none_or(|before| now.is_like(before));
        if (is_settled && began.elapsed() > Duration::from_secs(3))
            || began.elapsed() > verdict::SETTLE
        {
            return now;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
