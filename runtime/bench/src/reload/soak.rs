//! Very many reloads of one extension among others, under constant calls.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use tenon_console::error::CliError;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::DIM;
use tenon_console::output::GREEN;
use tenon_console::output::Progress;
use tenon_console::output::RED;
use tenon_console::output::Table;

use crate::args::Args;
use crate::load::Calls;
use crate::load::Load;
use crate::load::ResourceUsage;
use crate::measured;
use crate::measured::MeasuredSession;
use crate::measured::SessionSetup;
use crate::process;
use crate::tenon::Tenon;

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
    session_before: ResourceUsage,
    session_after: ResourceUsage,
    /// The zygote and all extensions' processes together.
    isolates_before: ResourceUsage,
    isolates_after: ResourceUsage,
    /// Whether the zygote is the same in the end.
    same_zygote: bool,
    /// Processes that have ended and that nobody has waited for.
    zombies: usize,
    passed: bool,
}

pub async fn run(args: &Args, tenon: &Tenon, reloads: usize) -> Result<ExitCode, CliError> {
    let report = {
        let _progress = Progress::start(&format!("reloading {reloads} times ..."));
        measure(tenon, reloads).await?
    };
    if args.json {
        output::json(&report)?;
    } else {
        print(&report);
    }
    Ok(if report.passed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn measure(tenon: &Tenon, reloads: usize) -> Result<Report, CliError> {
    let setup = SessionSetup { watch: true, debounce: Some(DEBOUNCE), ..SessionSetup::default() };
    let measured = MeasuredSession::open(tenon, super::sources(EXTENSIONS), setup).await?;
    let tools: Vec<String> = (0..EXTENSIONS).map(|number| format!("tool_{number}")).collect();
    let warm_up = Load::start(&measured.session, &tools);
    for number in 0..WARM_UP {
        reload(&measured, number).await?;
    }
    warm_up.stop().await?;
    let zygote = zygote(&measured)?;
    settle(&measured, None).await;
    let (session_before, isolates_before) = held(&measured);
    let load = Load::start(&measured.session, &tools);
    let started = std::time::Instant::now();
    for number in WARM_UP..WARM_UP + reloads {
        reload(&measured, number).await?;
    }
    let seconds = started.elapsed().as_secs_f64();
    let calls = load.stop().await?;
    settle(&measured, Some((session_before, isolates_before))).await;
    let (session_after, isolates_after) = held(&measured);
    let same_zygote = self::zygote(&measured)? == zygote;
    let zombies = process::zombies(&[zygote, std::process::id()]);
    measured.end().await?;
    let grown = |before: ResourceUsage, after: ResourceUsage| {
        after.memory_mb > before.memory_mb * GROWTH || !after.is_like(&before, SLACK)
    };
    let passed = calls.sent == calls.answered
        && calls.succeeded == calls.sent
        && same_zygote
        && zombies == 0
        && !grown(session_before, session_after)
        && !grown(isolates_before, isolates_after);
    Ok(Report {
        engine: tenon.engine.name.clone(),
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

fn zygote(measured: &MeasuredSession) -> Result<u32, CliError> {
    let pids = measured.isolates.pids();
    pids.first().copied().ok_or_else(|| CliError::new("there is no zygote"))
}

/// What this process holds, and what the zygote and the extensions hold together.
fn held(measured: &MeasuredSession) -> (ResourceUsage, ResourceUsage) {
    (ResourceUsage::of(std::process::id()), ResourceUsage::of_all(&measured.isolates.pids()))
}

/// Saves the extension, and waits until the new generation serves.
async fn reload(measured: &MeasuredSession, number: usize) -> Result<(), CliError> {
    let answer = (number + 1).to_string();
    measured.write(&super::name(0), &super::source("tool_0", &answer))?;
    measured::until_async(&format!("save {number} serves"), || async {
        let result = measured::call(&measured.session, "tool_0").await;
        result.is_ok_and(|result| result.text_result_for_llm == answer)
    })
    .await
}

/// Waits until replaced generations are gone: until all processes hold what they held, or for some time.
async fn settle(measured: &MeasuredSession, before: Option<(ResourceUsage, ResourceUsage)>) {
    let began = std::time::Instant::now();
    // The least time lets memory go that is given back in the background.
    let least = Duration::from_secs(2);
    while began.elapsed() < SETTLE {
        let is_settled = before.is_none_or(|(session, isolates)| {
            let (session_now, isolates_now) = held(measured);
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
