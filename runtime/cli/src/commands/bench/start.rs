//! `tenon bench start`: what it costs to have extensions ready and idle.
//!
//! Every case runs in a process of its own, so that none sees the memory or the caches of another.
//! Figures of different rows may be compared, because they come from one run on one machine; the
//! figures themselves mean little elsewhere.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;

use super::node_host::NodeExtension;
use super::node_host::NodeHost;
use super::process;
use super::single;
use super::single::Single;
use crate::args::Args;
use crate::args::BenchStart;
use crate::error::CliError;
use crate::output;
use crate::output::BOLD;
use crate::output::DIM;
use crate::output::Progress;
use crate::output::Table;
use crate::workspace;

/// One measured case.
#[derive(Debug, Clone, Serialize)]
struct Measurement {
    /// What was measured.
    case: String,
    /// `v8`, `quickjs` or `node`.
    engine: String,
    /// How many.
    count: usize,
    /// Wall time until ready, one after the other, in milliseconds: the median.
    ready_ms: f64,
    /// CPU time until ready, in milliseconds: the median.
    cpu_ms: f64,
    /// Private memory of one more when idle, in megabytes.
    private_mb: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    measurements: Vec<Measurement>,
    /// How many times less than the node process, for each of the others in their order.
    ratios: Vec<Ratio>,
}

#[derive(Debug, Serialize)]
struct Ratio {
    case: String,
    engine: String,
    cpu: f64,
    memory: f64,
}

pub async fn run(args: &Args, bench: &BenchStart) -> Result<ExitCode, CliError> {
    if let Some(case) = &bench.single {
        output::json(&single::measure(case, bench.count).await?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = measure_all(args, bench).await?;
    if args.json {
        output::json(&report)?;
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

async fn measure_all(args: &Args, bench: &BenchStart) -> Result<Report, CliError> {
    let mut measurements = Vec::new();
    if !bench.no_node {
        let _progress = Progress::start("measuring node processes ...");
        match node(args, bench).await {
            Ok(measured) => measurements.push(measured),
            Err(error) => {
                CliError::new(format!("node was not measured: {}", error.message())).print();
            }
        }
    }
    let own = std::env::current_exe()?;
    for program in std::iter::once(own.as_path()).chain(bench.others.iter().map(|p| p.as_path())) {
        let engine = engine_of(program)?;
        for case in single::CASES {
            let _progress = Progress::start(&format!("measuring {case} ..."));
            let measured = single::measure_in(program, case, bench.count)?;
            measurements.push(Measurement::new(case, &engine, measured));
        }
    }
    let ratios = ratios(&measurements);
    Ok(Report { measurements, ratios })
}

/// So many node processes, one after the other; all of them idle together.
async fn node(args: &Args, bench: &BenchStart) -> Result<Measurement, CliError> {
    let host = NodeHost::find(bench.sdk.as_deref(), &workspace::home(args)?)?;
    let mut running = Vec::new();
    for _ in 0..bench.count {
        running.push(host.start("start", single::FIVE_MODULES).await?);
    }
    let private = |it: &NodeExtension| process::private_bytes(it.pid()) as f64 / 1e6;
    let measured = Single {
        ready_ms: running.iter().map(|it| it.ready_ms).collect(),
        cpu_ms: running.iter().map(|it| it.cpu_ms).collect(),
        private_mb: process::median(running.iter().map(private).collect()),
    };
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
            private_mb: measured.private_mb,
        }
    }
}

/// The engine in another build of the program.
fn engine_of(program: &Path) -> Result<String, CliError> {
    let output = std::process::Command::new(program).args(["--engine-info", "--json"]).output()?;
    let info: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok(info["name"].as_str().unwrap_or("unknown").to_owned())
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
            cpu: node.cpu_ms / measured.cpu_ms,
            memory: node.private_mb / measured.private_mb,
        })
        .collect()
}

fn print(report: &Report) {
    let columns = ["CASE", "ENGINE", ">READY ms", ">CPU ms", ">PRIVATE MB", ">CPU", ">MEMORY"];
    let mut table = Table::new(&columns);
    // One for each but the node process, in the same order: two builds may have the same engine.
    let mut ratios = report.ratios.iter();
    for measured in &report.measurements {
        let ratio = if measured.engine == "node" { None } else { ratios.next() };
        let times = |pick: fn(&Ratio) -> f64| match ratio {
            Some(ratio) => format!("{:.1}x", pick(ratio)),
            None => "1".to_owned(),
        };
        table.row(vec![
            (measured.case.clone(), BOLD),
            (measured.engine.clone(), DIM),
            (format!("{:.2}", measured.ready_ms), anstyle::Style::new()),
            (format!("{:.2}", measured.cpu_ms), anstyle::Style::new()),
            (format!("{:.2}", measured.private_mb), anstyle::Style::new()),
            (times(|ratio| ratio.cpu), anstyle::Style::new()),
            (times(|ratio| ratio.memory), anstyle::Style::new()),
        ]);
    }
    table.print();
    output::line("");
    output::line(format_args!(
        "{DIM}READY and CPU: until one extension is ready, median. PRIVATE: memory of one more, idle.{DIM:#}"
    ));
    output::line(format_args!(
        "{DIM}The last two columns: how many times less than the node process.{DIM:#}"
    ));
}
