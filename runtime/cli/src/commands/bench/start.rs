//! `tenon bench start`: what it costs to have extensions ready and idle.
//!
//! Every case runs in a process of its own, so that none sees the memory or the caches of another.
//! Figures of different rows may be compared, because they come from one run on one machine; the
//! figures themselves mean little elsewhere.

use std::path::Path;
use std::process::ExitCode;

use serde::Deserialize;
use serde::Serialize;

use super::node;
use super::single;
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
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Measurement {
    /// What was measured.
    pub case: String,
    /// `v8`, `quickjs` or `node`.
    pub engine: String,
    /// How many.
    pub count: usize,
    /// Wall time until ready, one after the other, in milliseconds: the median.
    pub ready_ms: f64,
    /// CPU time until ready, in milliseconds: the median.
    pub cpu_ms: f64,
    /// Private memory of one more when idle, in megabytes.
    pub private_mb: f64,
}

#[derive(Debug, Serialize)]
struct Report {
    measurements: Vec<Measurement>,
    /// How many times less than the node process, by case and engine.
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
    let report = measure_all(args, bench)?;
    if args.json {
        output::json(&report)?;
    } else {
        print(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn measure_all(args: &Args, bench: &BenchStart) -> Result<Report, CliError> {
    let mut measurements = Vec::new();
    if !bench.no_node {
        let _progress = Progress::start("measuring node processes ...");
        match node::measure(bench, &workspace::home(args)?) {
            Ok(measured) => measurements.push(measured),
            Err(reason) => CliError::new(format!("node was not measured: {reason}")).print(),
        }
    }
    let own = std::env::current_exe()?;
    for program in std::iter::once(own.as_path()).chain(bench.others.iter().map(|p| p.as_path())) {
        for case in single::CASES {
            let _progress = Progress::start(&format!("measuring {case} ..."));
            measurements.push(measure_in(program, case, bench.count)?);
        }
    }
    let ratios = ratios(&measurements);
    Ok(Report { measurements, ratios })
}

/// Measures a case in a process of its own.
fn measure_in(program: &Path, case: &str, count: usize) -> Result<Measurement, CliError> {
    let output = std::process::Command::new(program)
        .args(["bench", "start", "--single", case, "--count", &count.to_string()])
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(CliError::new(format!(
            "{} could not measure {case}: {text}",
            program.display()
        )));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
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
    for measured in &report.measurements {
        let ratio = report
            .ratios
            .iter()
            .find(|ratio| ratio.case == measured.case && ratio.engine == measured.engine);
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
