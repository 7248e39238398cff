//! The zygote dies in the middle of calls, and every extension with it, again and again.

use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use serde::Serialize;
use tenon_console::error::CliError;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::DIM;
use tenon_console::output::GREEN;
use tenon_console::output::Progress;
use tenon_console::output::RED;

use crate::args::Args;
use crate::load::Calls;
use crate::load::Load;
use crate::measured;
use crate::measured::MeasuredSession;
use crate::measured::SessionSetup;
use crate::tenon::Tenon;

/// Extensions, all of which die and come back.
const EXTENSIONS: usize = 10;

/// Calls that are made before the next kill, so that some are under way.
const CALLS_BETWEEN: u64 = 200;

#[derive(Debug, Serialize)]
struct Report {
    engine: String,
    extensions: usize,
    kills: usize,
    /// How often every extension was running again afterwards.
    recovered: usize,
    /// From the signal to that, in milliseconds.
    recovery_p50_ms: f64,
    recovery_p95_ms: f64,
    calls: Calls,
    /// Children of extensions that died and that lived on.
    children_left: usize,
    /// Processes that were there when the session had ended.
    processes_left: usize,
    passed: bool,
}

pub async fn run(args: &Args, tenon: &Tenon, kills: usize) -> Result<ExitCode, CliError> {
    let report = {
        let _progress = Progress::start(&format!("killing {kills} times ..."));
        measure(tenon, kills).await?
    };
    if args.json {
        output::json(&report)?;
    } else {
        print(&report);
    }
    Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How long the children of extensions sleep: a number that tells them from any other process.
fn children_sleep() -> String {
    format!("86400.{}", std::process::id())
}

/// An extension with a tool that takes a moment, and a child.
fn source(number: usize) -> String {
    let sleep = children_sleep();
    format!(
        "import {{ joinSession }} from \"@github/copilot-sdk/extension\";\n\
         import {{ spawn }} from \"node:child_process\";\n\
         spawn(\"sleep\", [\"{sleep}\"], {{ stdio: \"ignore\" }});\n\
         await joinSession({{ tools: [{{ name: \"tool_{number}\", description: \"x\",\n\
           handler: () => new Promise((resolve) => setTimeout(() => resolve(\"done\"), 2)) }}] }});\n"
    )
}

/// The children of extensions that are alive.
fn children() -> usize {
    let sleep = children_sleep();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    processes
        .filter(|entry| {
            let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&arguments).split('\0').any(|argument| argument == sleep)
        })
        .count()
}

async fn measure(tenon: &Tenon, kills: usize) -> Result<Report, CliError> {
    let sources = (0..EXTENSIONS).map(|number| (super::name(number), source(number)));
    let setup =
        SessionSetup { restart_after: Some(Duration::from_millis(10)), ..SessionSetup::default() };
    let measured = MeasuredSession::open(tenon, sources, setup).await?;
    let tools: Vec<String> = (0..EXTENSIONS).map(|number| format!("tool_{number}")).collect();
    let load = Load::start(&measured.session, &tools);
    let (mut times, mut pids_seen, mut children_left) = (Vec::new(), Vec::new(), 0);
    for number in 0..kills {
        let enough = load.sent() + CALLS_BETWEEN;
        measured::until("calls are made", || load.sent() >= enough).await?;
        let signal = if number.is_multiple_of(2) { libc::SIGSEGV } else { libc::SIGKILL };
        let started = Instant::now();
        let pids = measured.kill_zygote(signal).await?;
        // One that never comes back is what this is to find: it is counted, not an error.
        if measured::until("all run again", || measured.all_run(EXTENSIONS, &pids)).await.is_err() {
            break;
        }
        times.push(started.elapsed().as_secs_f64() * 1e3);
        pids_seen.extend(pids);
        children_left = children_left.max(extra_children().await);
    }
    let calls = load.stop().await?;
    pids_seen.extend(measured.isolates.pids());
    measured.end().await?;
    // Those that are being ended may take a moment.
    let _ = measured::until("children end", || children() == 0).await;
    let processes_left =
        children() + pids_seen.iter().filter(|&&pid| measured::is_alive(pid)).count();
    let recovered = times.len();
    let passed = recovered == kills
        && calls.sent == calls.answered
        && children_left == 0
        && processes_left == 0;
    Ok(Report {
        engine: tenon.engine.name.clone(),
        extensions: EXTENSIONS,
        kills,
        recovered,
        recovery_p50_ms: measured::percentile(&times, 0.5),
        recovery_p95_ms: measured::percentile(&times, 0.95),
        calls,
        children_left,
        processes_left,
        passed,
    })
}

/// Children beyond those of the extensions that run, after a moment for them to go.
async fn extra_children() -> usize {
    let began = Instant::now();
    while children() > EXTENSIONS && began.elapsed() < Duration::from_secs(5) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    children().saturating_sub(EXTENSIONS)
}

fn print(report: &Report) {
    let Calls { sent, answered, succeeded, failed, unknown_tool, failures } = &report.calls;
    output::line(format_args!(
        "{BOLD}{} kills{BOLD:#} of the zygote of {} extensions, SIGSEGV and SIGKILL in turn ({})",
        report.kills, report.extensions, report.engine
    ));
    output::line(format_args!(
        "all extensions back: {} times, after {:.0} ms (p50), {:.0} ms (p95)",
        report.recovered, report.recovery_p50_ms, report.recovery_p95_ms
    ));
    output::line(format_args!(
        "calls: {sent} sent, {answered} answered: {succeeded} with a result, {failed} with a failure that \
         says why, {unknown_tool} while nobody had the tool"
    ));
    failures.iter().for_each(|failure| output::line(format_args!("  {DIM}{failure}{DIM:#}")));
    output::line(format_args!(
        "left behind: {} children of extensions that died, {} processes in the end",
        report.children_left, report.processes_left
    ));
    output::line("");
    let (style, verdict) = if report.passed {
        (GREEN, "every call was answered, and everything came back")
    } else {
        (RED, "something was lost, or is left")
    };
    output::line(format_args!("{style}{verdict}{style:#}"));
}
