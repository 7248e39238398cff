//! `tenon-bench start`: what it costs to have extensions ready and idle.
//!
//! Every case runs in a process of its own, so that none sees the memory or the caches of another.
//! Figures of different rows may be compared, because they come from one run on one machine; the
//! figures themselves mean little elsewhere.

use std::process::ExitCode;

use serde::Serialize;
use tenon_console::error::CliError;
use tenon_console::home;
use tenon_console::output;
use tenon_console::output::BOLD;
use tenon_console::output::DIM;
use tenon_console::output::Progress;
use tenon_console::output::Table;
use tenon_console::output::YELLOW;

use crate::args::Args;
use crate::args::BenchStart;
use crate::in_process;
use crate::node_host::NodeHost;
use crate::process;
use crate::single;
use crate::single::Single;
use crate::single::Zygote;
use crate::tenon::Tenon;

/// One measured case: medians.
#[derive(Debug, Clone, Serialize)]
struct Measurement {
    /// What was measured.
    case: String,
    /// `v8`, `quickjs` or `node`.
    engine: String,
    /// How many.
    count: usize,
    /// Wall time until ready, one after the other, in milliseconds.
    ready_ms: f64,
    /// CPU time until ready, in milliseconds: of the extension's process, and of the zygote for the fork.
    cpu_ms: f64,
    /// CPU time of the session meanwhile, in milliseconds.
    session_cpu_ms: f64,
    /// Private memory when idle, in megabytes.
    private_mb: f64,
    /// Private memory after 1,000 calls, in megabytes.
    called_mb: f64,
    /// Private memory after a garbage collection, in megabytes.
    collected_mb: f64,
    /// Private memory, a share of what is shared (PSS) and page tables when idle, in megabytes.
    whole_mb: f64,
    /// By how much the same grows for all processes together when there is one more, in megabytes.
    one_more_mb: f64,
    /// What the zygote took, once.
    zygote: Option<Zygote>,
}

#[derive(Debug, Serialize)]
struct Report {
    measurements: Vec<Measurement>,
    /// How many times less than the node process, for each of the others in their order.
    ratios: Vec<Ratio>,
    /// What was not measured, and why.
    missing: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Ratio {
    case: String,
    engine: String,
    ready: f64,
    cpu: f64,
    private: f64,
    called: f64,
    whole: f64,
    one_more: f64,
}

pub async fn run(args: &Args, tenon: &Tenon, bench: &BenchStart) -> Result<ExitCode, CliError> {
    if let Some(case) = &bench.single {
        output::json(&single::measure(tenon, case, bench.count).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = measure_all(args, tenon, bench).await?;
    if args.json {
        output::json(&report)?;
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure_all(args: &Args, tenon: &Tenon, bench: &BenchStart) -> Result<Report, CliError> {
    let (mut measurements, mut missing) = (Vec::new(), Vec::new());
    let node = if bench.no_node {
        Err(CliError::new("left out with --no-node"))
    } else {
        let _progress = Progress::start("measuring node processes ...");
        node(args, bench).await
    };
    match node {
        Ok(measured) => measurements.push(measured),
        Err(error) => missing.push(format!("node processes: {}", error.message())),
    }
    let others = bench.others.iter().map(|program| Tenon::find(Some(program)));
    for tenon in std::iter::once(Ok(tenon.clone())).chain(others) {
        let tenon = tenon?;
        for case in single::CASES {
            let _progress = Progress::start(&format!("measuring {case} ..."));
            let measured = single::measure_in(&tenon, case, bench.count)?;
            measurements.push(Measurement::new(case, &tenon.engine.name, measured));
        }
        let program = match in_process::find(args, &tenon) {
            Ok(program) => program,
            Err(error) => {
                missing.push(format!("{}: {}", in_process::CASES.join("; "), error.message()));
                continue;
            }
        };
        for case in in_process::CASES {
            let _progress = Progress::start(&format!("measuring {case} ..."));
            let measured = in_process::measure(&program, case, bench.count).await?;
            measurements.push(Measurement::new(case, &tenon.engine.name, measured));
        }
    }
    let ratios = ratios(&measurements);
    Ok(Report { measurements, ratios, missing })
}

async fn node(args: &Args, bench: &BenchStart) -> Result<Measurement, CliError> {
    let host = NodeHost::find(bench.sdk.as_deref(), &home::of_tenon(args.home.as_deref())?)?;
    let measured = single::of_node(&host, bench.count).await?;
    Ok(Measurement::new("node process, five modules", "node", measured))
}

impl Measurement {
    fn new(case: &str, engine: &str, measured: Single) -> Self {
        Self {
            case: case.to_owned(),
            engine: engine.to_owned(),
            count: measured.ready_ms.len(),
            ready_ms: process::median(measured.ready_ms),
            cpu_ms: process::median(measured.cpu_ms),
            session_cpu_ms: process::median(measured.session_cpu_ms),
            private_mb: process::median(measured.private_mb),
            called_mb: process::median(measured.called_mb),
            collected_mb: process::median(measured.collected_mb),
            whole_mb: process::median(measured.whole_mb),
            one_more_mb: process::median(measured.one_more_mb),
            zygote: measured.zygote,
        }
    }
}

fn ratios(measurements: &[Measurement]) -> Vec<Ratio> {
    let Some(node) = measurements.iter().find(|measured| measured.engine == "node") else {
        return Vec::new();
    };
    measurements
        .iter()
        .filter(|measured| measured.engine != "node")
        .map(|measured| Ratio {
            case: measured.case.clone(),
            engine: measured.engine.clone(),
            ready: node.ready_ms / measured.ready_ms,
            cpu: node.cpu_ms / measured.cpu_ms,
            private: node.private_mb / measured.private_mb,
            called: node.called_mb / measured.called_mb,
            whole: node.whole_mb / measured.whole_mb,
            one_more: node.one_more_mb / measured.one_more_mb,
        })
        .collect()
}

fn print(report: &Report) {
    let columns = [
        "CASE",
        "ENGINE",
        ">READY ms",
        ">",
        ">CPU ms",
        ">",
        ">PRIVATE MB",
        ">",
        ">AFTER CALLS",
        ">",
        ">PSS MB",
        ">",
        ">ONE MORE MB",
        ">",
    ];
    let mut table = Table::new(&columns);
    // One for each but the node process, in the same order: two builds may have the same engine.
    let mut ratios = report.ratios.iter();
    let plain = anstyle::Style::new();
    for measured in &report.measurements {
        let ratio = if measured.engine == "node" { None } else { ratios.next() };
        let mut row = vec![(measured.case.clone(), BOLD), (measured.engine.clone(), DIM)];
        let cells = [
            (measured.ready_ms, ratio.map(|ratio| ratio.ready)),
            (measured.cpu_ms, ratio.map(|ratio| ratio.cpu)),
            (measured.private_mb, ratio.map(|ratio| ratio.private)),
            (measured.called_mb, ratio.map(|ratio| ratio.called)),
            (measured.whole_mb, ratio.map(|ratio| ratio.whole)),
            (measured.one_more_mb, ratio.map(|ratio| ratio.one_more)),
        ];
        for (value, times) in cells {
            row.push((shown(value, ""), plain));
            row.push((times.map(|times| shown(times, "x")).unwrap_or_default(), BOLD));
        }
        table.row(row);
    }
    table.print();
    output::line("");
    for (measured, zygote) in
        report.measurements.iter().filter_map(|it| Some((it, it.zygote.as_ref()?)))
    {
        let collected = if measured.collected_mb.is_finite() {
            format!("; after a garbage collection {:.2} MB private", measured.collected_mb)
        } else {
            String::new()
        };
        output::line(format_args!(
            "{DIM}{}, {}: the zygote took {:.0} ms and {:.0} ms CPU to boot, once, and holds {:.1} MB; the session \
             {:.2} ms CPU for each{collected}{DIM:#}",
            measured.case,
            measured.engine,
            zygote.ready_ms,
            zygote.cpu_ms,
            zygote.whole_mb,
            measured.session_cpu_ms
        ));
    }
    for missing in &report.missing {
        output::line(format_args!("{YELLOW}not measured{YELLOW:#}: {missing}"));
    }
    output::line(format_args!(
        "{DIM}Medians. READY and CPU: until one extension is ready; CPU is that of its process and of the fork. \
         PRIVATE: its own memory, idle\nand AFTER 1,000 CALLS. PSS: with its share of what is shared, and page \
         tables.\nONE MORE: by how much that grows for all processes together. x: how many times less than the node process.{DIM:#}"
    ));
}

/// A figure, if there is one.
fn shown(value: f64, unit: &str) -> String {
    match (value.is_finite(), unit) {
        (false, _) => "-".to_owned(),
        (true, "") => format!("{value:.2}"),
        (true, unit) => format!("{value:.1}{unit}"),
    }
}
