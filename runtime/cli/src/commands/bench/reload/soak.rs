//! Very many reloads of one extension among others, under constant calls.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;

use super::super::load::Calls;
use super::super::load::Holdings;
use super::super::load::Load;
use super::super::process;
use super::super::stage;
use super::super::stage::Setting;
use super::super::stage::Stage;
use crate::args::Args;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::Progress;
use crate::output::RED;
use crate::output::Table;

/// Extensions, one of which changes.
const EXTENSIONS: usize = 50;

/// Reloads before anything is compared: heaps, allocators and caches have grown to what they need then.
const WARM_UP: usize = 200;

/// The quiet time on disk; the usual one would be most of what is measured.
const DEBOUNCE: Duration = Duration::from_millis(5);

/// How long replaced generations have to be gone once nothing happens any more.
const SETTLE: Duration = Duration::from_secs(15);

/// By how much the memory of the session, and that of the zygote with the extensions, may have grown.
const GROWTH: f64 = 1.1;

/// Threads and files that may have been added: idle threads for files end when they like.
const SLACK: usize = 16;

#[derive(Debug, Serialize)]
struct Report {
    engine: String,
    extensions: usize,
    reloads: usize,
    seconds: f64,
    calls: Calls,
    /// This process, with the session.
    session_before: Holdings,
    session_after: Holdings,
    /// The zygote and all extensions' processes together.
    isolates_before: Holdings,
    isolates_after: Holdings,
    /// Whether the zygote is the same in the end.
    same_zygote: bool,
    /// Processes that have ended and that nobody has waited for.
    zombies: usize,
    passed: bool,
}

pub async fn run(args: &Args, reloads: usize) -> Result<ExitCode, CliError> {
    let report = {
        let _progress = Progress::start(&format!("reloading {reloads} times ..."));
        measure(reloads).await?
    };
    if args.json {
        output::json(&report)?;
    } else {
        print(&report);
    }
    Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(reloads: usize) -> Result<Report, CliError> {
    let setting = Setting { watch: true, debounce: Some(DEBOUNCE), ..Setting::default() };
    let stage = Stage::open(super::sources(EXTENSIONS), setting).await?;
    let tools: Vec<String> = (0..EXTENSIONS).map(|number| format!("tool_{number}")).collect();
    let warm_up = Load::start(&stage.session, &tools);
    for number in 0..WARM_UP {
        reload(&stage, number).await?;
    }
    warm_up.stop().await?;
    let zygote = zygote(&stage)?;
    settle(&stage, None).await;
    let (session_before, isolates_before) = held(&stage);
    let load = Load::start(&stage.session, &tools);
    let started = std::time::Instant::now();
    for number in WARM_UP..WARM_UP + reloads {
        reload(&stage, number).await?;
    }
    let seconds = started.elapsed().as_secs_f64();
    let calls = load.stop().await?;
    settle(&stage, Some((session_before, isolates_before))).await;
    let (session_after, isolates_after) = held(&stage);
    let same_zygote = self::zygote(&stage)? == zygote;
    let zombies = process::zombies(&[zygote, std::process::id()]);
    stage.end().await?;
    let grown = |before: Holdings, after: Holdings| {
        after.memory_mb > before.memory_mb * GROWTH || !after.is_like(&before, SLACK)
    };
    let passed = calls.sent == calls.answered
        && calls.succeeded == calls.sent
        && same_zygote
        && zombies == 0
        && !grown(session_before, session_after)
        && !grown(isolates_before, isolates_after);
    Ok(Report {
        engine: crate::engine::info().name.to_owned(),
        extensions: EXTENSIONS,
        reloads,
        seconds,
        calls,
        session_before,
        session_after,
        isolates_before,
        isolates_after,
        same_zygote,
        zombies,
        passed,
    })
}

fn zygote(stage: &Stage) -> Result<u32, CliError> {
    let pids = stage.isolates.pids();
    pids.first().copied().ok_or_else(|| CliError::new("there is no zygote"))
}

/// What this process holds, and what the zygote and the extensions hold together.
fn held(stage: &Stage) -> (Holdings, Holdings) {
    (Holdings::of(std::process::id()), Holdings::of_all(&stage.isolates.pids()))
}

/// Saves the extension, and waits until the new generation serves.
async fn reload(stage: &Stage, number: usize) -> Result<(), CliError> {
    let answer = (number + 1).to_string();
    stage.write(&super::name(0), &super::source("tool_0", &answer))?;
    stage::until_async(&format!("save {number} serves"), || async {
        let result = stage::call(&stage.session, "tool_0").await;
        result.is_ok_and(|result| result.text_result_for_llm == answer)
    })
    .await
}

/// Waits until replaced generations are gone: until all processes hold what they held, or for some time.
async fn settle(stage: &Stage, before: Option<(Holdings, Holdings)>) {
    let began = std::time::Instant::now();
    // The least time lets memory go that is given back in the background.
    let least = Duration::from_secs(2);
    while began.elapsed() < SETTLE {
        let is_settled = before.is_none_or(|(session, isolates)| {
            let (session_now, isolates_now) = held(stage);
            session_now.is_like(&session, 0) && isolates_now.is_like(&isolates, 0)
        });
        if is_settled && began.elapsed() >= least {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn print(report: &Report) {
    let Calls { sent, answered, succeeded, failures, .. } = &report.calls;
    output::line(format_args!(
        "{BOLD}{} reloads{BOLD:#} of one among {} extensions in {:.1} s, under constant calls ({})",
        report.reloads, report.extensions, report.seconds, report.engine
    ));
    output::line(format_args!(
        "calls: {sent} sent, {answered} answered, {} without a result",
        answered - succeeded
    ));
    failures.iter().for_each(|failure| output::line(format_args!("  {DIM}{failure}{DIM:#}")));
    output::line("");
    let columns = ["PROCESS", ">MEMORY MB", ">AFTER", ">THREADS", ">AFTER", ">FILES", ">AFTER"];
    let mut table = Table::new(&columns);
    let plain = anstyle::Style::new();
    for (process, before, after) in [
        ("session", report.session_before, report.session_after),
        ("zygote and extensions", report.isolates_before, report.isolates_after),
    ] {
        table.row(vec![
            (process.to_owned(), BOLD),
            (format!("{:.1}", before.memory_mb), plain),
            (format!("{:.1}", after.memory_mb), plain),
            (before.threads.to_string(), plain),
            (after.threads.to_string(), plain),
            (before.files.to_string(), plain),
            (after.files.to_string(), plain),
        ]);
    }
    table.print();
    output::line("");
    if report.zombies > 0 {
        output::line(format_args!("{RED}{} zombies are left{RED:#}", report.zombies));
    }
    let (style, verdict) = if report.passed {
        (GREEN, "nothing was lost and nothing is left")
    } else {
        (RED, "something was lost, or is left")
    };
    output::line(format_args!("{style}{verdict}{style:#}"));
}
