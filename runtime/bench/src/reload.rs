//! `tenon-bench reload`: how soon a saved file is a tool that can be called, and what is left of very many
//! reloads or of processes that die.

mod kill;
mod soak;

use std::process::ExitCode;
use std::time::Duration;
use std::time::Instant;

use serde::Serialize;
use tenon_console::error::CliError;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::DIM;
use tenon_console::output::Progress;
use tenon_console::output::Table;
use tenon_host::events::Filter;

use crate::args::Args;
use crate::args::BenchReload;
use crate::measured;
use crate::measured::MeasuredSession;
use crate::measured::SessionSetup;
use crate::tenon::Tenon;

/// What the original needs from a saved file to the new tool. It was measured elsewhere, not in this run.
const ORIGINAL_SECONDS: f64 = 2.0;

/// How long one save may take to show.
const PATIENCE: Duration = Duration::from_secs(30);

/// Saves before the measurement, for compilers and caches.
const WARM_UP: usize = 2;

/// What was measured with one number of extensions.
#[derive(Debug, Serialize)]
struct Row {
    extensions: usize,
    engine: String,
    saves: usize,
    /// From the file being written to the new tool being listed, in milliseconds.
    p50_ms: f64,
    p95_ms: f64,
    /// Of that, what comes after the time for which it must be quiet on disk.
    after_debounce_p50_ms: f64,
    after_debounce_p95_ms: f64,
    debounce_ms: f64,
    /// What the original takes, measured elsewhere.
    original_ms: f64,
}

pub async fn run(args: &Args, tenon: &Tenon, bench: &BenchReload) -> Result<ExitCode, CliError> {
    if let Some(reloads) = bench.soak {
        return soak::run(args, tenon, reloads.max(1)).await;
    }
    if let Some(kills) = bench.kill {
        return kill::run(args, tenon, kills.max(1)).await;
    }
    let mut rows = Vec::new();
    for &count in &bench.extensions {
        let _progress = Progress::start(&format!("saving one of {count} ..."));
        rows.push(measure(tenon, count.max(1), bench.saves.max(1)).await?);
    }
    if args.json {
        output::json(&rows)?;
    } else {
        print(&rows);
    }
    Ok(ExitCode::SUCCESS)
}

/// An extension with one tool.
fn source(tool: &str, answer: &str) -> String {
    format!(
        "import {{ joinSession }} from \"@github/copilot-sdk/extension\";\n\
         import fs from \"node:fs\";\nimport path from \"node:path\";\n\
         await joinSession({{ tools: [{{ name: \"{tool}\", description: \"x\",\n\
           handler: () => \"{answer}\" }}] }});\n"
    )
}

/// So many extensions, named by number.
pub fn sources(count: usize) -> impl Iterator<Item = (String, String)> {
    (0..count).map(|number| (name(number), source(&format!("tool_{number}"), "0")))
}

pub fn name(number: usize) -> String {
    format!("extension-{number}")
}

async fn measure(tenon: &Tenon, count: usize, saves: usize) -> Result<Row, CliError> {
    // As the program does it: with a zygote that has booted, and the usual debounce.
    let setup = SessionSetup { watch: true, record: true, ..SessionSetup::default() };
    let measured = MeasuredSession::open(tenon, sources(count), setup).await?;
    let mut times = Vec::new();
    for number in 0..WARM_UP + saves {
        measured.session.wait_until_prepared().await;
        let took = save(&measured, &format!("saved_{number}")).await?;
        if number >= WARM_UP {
            times.push(took.as_secs_f64() * 1e3);
        }
    }
    let debounce = measured.debounce.as_secs_f64() * 1e3;
    measured.end().await?;
    let rest: Vec<f64> = times.iter().map(|time| time - debounce).collect();
    Ok(Row {
        extensions: count,
        engine: tenon.engine.name.clone(),
        saves,
        p50_ms: measured::percentile(&times, 0.5),
        p95_ms: measured::percentile(&times, 0.95),
        after_debounce_p50_ms: measured::percentile(&rest, 0.5),
        after_debounce_p95_ms: measured::percentile(&rest, 0.95),
        debounce_ms: debounce,
        original_ms: ORIGINAL_SECONDS * 1e3,
    })
}

/// Saves a file with another tool; how long it takes until the tool is listed.
pub async fn save(measured: &MeasuredSession, tool: &str) -> Result<Duration, CliError> {
    let mut filter = Filter::default();
    filter.add("session.tools_updated");
    let updates = measured.session.subscribe("bench", filter);
    let source = source(tool, "saved");
    let started = Instant::now();
    measured.write(&name(0), &source)?;
    let listed = async {
        while !measured.session.has_tool(tool) {
            updates.next().await;
        }
    };
    let listed = tokio::time::timeout(PATIENCE, listed).await;
    listed.map_err(|_| CliError::new(format!("{tool} was not listed within {PATIENCE:?}")))?;
    Ok(started.elapsed())
}

fn print(rows: &[Row]) {
    let columns = [
        "EXTENSIONS",
        ">SAVES",
        ">P50 ms",
        ">P95 ms",
        ">AFTER DEBOUNCE P50 ms",
        ">P95 ms",
        ">ORIGINAL",
    ];
    let mut table = Table::new(&columns);
    let plain = anstyle::Style::new();
    for row in rows {
        table.row(vec![
            (row.extensions.to_string(), BOLD),
            (row.saves.to_string(), DIM),
            (format!("{:.1}", row.p50_ms), plain),
            (format!("{:.1}", row.p95_ms), plain),
            (format!("{:.1}", row.after_debounce_p50_ms), plain),
            (format!("{:.1}", row.after_debounce_p95_ms), plain),
            (format!("{:.0}x", row.original_ms / row.p50_ms), plain),
        ]);
    }
    table.print();
    output::line("");
    let debounce = rows.first().map_or(0.0, |row| row.debounce_ms);
    output::line(format_args!(
        "{DIM}From a saved file to the new tool being listed. It must be quiet on disk for {debounce:.0} ms \
         first.\nORIGINAL: how many times longer the original takes, {ORIGINAL_SECONDS} s; that was measured \
         elsewhere, not in this run.{DIM:#}"
    ));
}
