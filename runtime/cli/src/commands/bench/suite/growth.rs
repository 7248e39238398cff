//! What one more costs when there are many: extensions in a session, sessions in a program.

use std::path::Path;
use std::str::FromStr;
use std::time::Instant;

use serde_json::json;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::isolates::Isolates;
use tenon_host::session::EndReason;

use super::Plan;
use super::report::Growth;
use super::report::Point;
use super::report::Side;
use super::report::percentile;
use crate::commands::bench::node_host::NodeExtension;
use crate::commands::bench::node_host::NodeHost;
use crate::commands::bench::process;
use crate::commands::bench::single;
use crate::commands::bench::stage;
use crate::error::CliError;

/// How many extensions there are, one number after the other.
pub const EXTENSIONS: [usize; 5] = [1, 10, 100, 500, 1000];

/// How many sessions, each with so many extensions.
pub const SESSIONS: [usize; 3] = [1, 10, 100];
const EXTENSIONS_EACH: usize = 10;

/// How many node processes. More would only take longer: they share nothing that could run out sooner.
pub const NODE: [usize; 3] = [1, 10, 50];

const OF_EXTENSIONS: &str = "extensions";
const OF_SESSIONS: &str = "sessions of 10 extensions";

/// Every extension is given this long. With a thousand at once the last one waits for all others.
const CONFIG: &str = "[extensions.\"*\"]\nstart-deadline-s = 120\n";

/// A number of sessions with a number of extensions each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    sessions: usize,
    extensions: usize,
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('x').and_then(|(sessions, extensions)| {
            Some((sessions.parse().ok()?, extensions.parse().ok()?))
        });
        let (sessions, extensions) = parsed.ok_or("it is SESSIONSxEXTENSIONS, such as 10x10")?;
        Ok(Self { sessions, extensions })
    }
}

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Growth>, CliError> {
    let most = plan.most;
    let mut grown = Vec::new();
    if let Some(host) = plan.node.clone() {
        let mut points = Vec::new();
        for count in NODE {
            plan.step(&format!("{count} node processes"));
            points.push(node_point(&host, count).await?);
        }
        grown.push(Growth::new(OF_EXTENSIONS, Side::Node, points));
    }
    let mut points = Vec::new();
    for count in EXTENSIONS.into_iter().filter(|&count| count <= most) {
        plan.step(&format!("{count} extensions"));
        points.push(point_in_a_process(count, Size { sessions: 1, extensions: count })?);
    }
    grown.push(Growth::new(OF_EXTENSIONS, Side::Tenon, points));
    let mut points = Vec::new();
    for count in SESSIONS.into_iter().filter(|&count| count * EXTENSIONS_EACH <= most) {
        plan.step(&format!("{count} sessions of {EXTENSIONS_EACH} extensions"));
        let size = Size { sessions: count, extensions: EXTENSIONS_EACH };
        points.push(point_in_a_process(count, size)?);
    }
    grown.push(Growth::new(OF_SESSIONS, Side::Tenon, points));
    Ok(grown)
}

/// A process of its own for each point: none sees the memory of another.
fn point_in_a_process(count: usize, size: Size) -> Result<Point, CliError> {
    let Size { sessions, extensions } = size;
    let output = std::process::Command::new(std::env::current_exe()?)
        .args(["bench", "--point", &format!("{sessions}x{extensions}")])
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(CliError::new(format!("{sessions} x {extensions} extensions failed: {text}")));
    }
    let point: Point = serde_json::from_slice(&output.stdout)?;
    Ok(Point { count, ..point })
}

/// Opens so many sessions in this process, and measures it and the process that the extensions live in.
pub async fn point(size: Size) -> Result<Point, CliError> {
    let folder = tempfile::tempdir()?;
    let root = std::fs::canonicalize(folder.path())?;
    std::fs::create_dir(root.join("home"))?;
    std::fs::write(root.join("home").join("config.toml"), CONFIG)?;
    for number in 0..size.extensions {
        let folder = root.join("extensions").join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let source = single::FIVE_MODULES.replace("NAME", &tool(number));
        std::fs::write(folder.join("extension.mjs"), source)?;
    }
    let isolates = Isolates::processes(std::env::current_exe()?, None);
    let started = Instant::now();
    let mut sessions = Vec::new();
    for _ in 0..size.sessions {
        sessions.push(open(&root, &isolates).await?);
    }
    let ready_s = started.elapsed().as_secs_f64();
    let pids: Vec<u32> = isolates.pids().into_iter().chain([std::process::id()]).collect();
    let mut point = held(size.sessions * size.extensions, ready_s, &pids);
    let mut times = Vec::new();
    for session in &sessions {
        for number in 0..size.extensions {
            let started = Instant::now();
            let answer = stage::call(session, &tool(number)).await;
            times.push(started.elapsed().as_secs_f64() * 1e6);
            point.answered += usize::from(answer.is_ok_and(|it| it.text_result_for_llm == "x"));
        }
    }
    point.call_us = percentile(&times, 0.5);
    for session in sessions {
        session.end(EndReason::Complete).await;
    }
    Ok(point)
}

fn tool(number: usize) -> String {
    format!("tool_{number}")
}

async fn open(root: &Path, isolates: &Isolates) -> Result<Session, CliError> {
    let options = SessionOptions {
        extension_folders: vec![root.join("extensions")],
        isolates: isolates.clone(),
        ..SessionOptions::new(root.to_owned(), root.join("home"))
    };
    let session = Session::new(options)?;
    session.load().await;
    match session.list().into_iter().find(|info| info.status != Status::Running) {
        None => Ok(session),
        Some(info) => {
            let why = info.error.map(|error| error.what.message).unwrap_or_default();
            Err(CliError::new(format!("{} does not run: {why}", info.id)))
        }
    }
}

/// What processes hold together.
fn held(extensions: usize, ready_s: f64, pids: &[u32]) -> Point {
    let cpu: f64 = pids.iter().copied().map(process::cpu_ms).sum();
    let memory: u64 = pids.iter().copied().map(process::private_bytes).sum();
    let entries = |folder| pids.iter().map(|&pid| process::entries(pid, folder)).sum();
    Point {
        count: extensions,
        extensions,
        ready_s,
        cpu_ms_each: cpu / extensions as f64,
        memory_mb_each: memory as f64 / 1e6 / extensions as f64,
        threads: entries("task"),
        files: entries("fd"),
        processes: pids.len(),
        answered: 0,
        call_us: f64::NAN,
    }
}

async fn node_point(host: &NodeHost, count: usize) -> Result<Point, CliError> {
    let started = Instant::now();
    let mut running = start_node(host, count).await?;
    let ready_s = started.elapsed().as_secs_f64();
    let pids: Vec<u32> = running.iter().map(NodeExtension::pid).collect();
    let mut point = held(count, ready_s, &pids);
    let mut times = Vec::new();
    for extension in &mut running {
        let started = Instant::now();
        point.answered += usize::from(extension.call("NAME", json!({})).await? == "x");
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    point.call_us = percentile(&times, 0.5);
    for extension in running {
        extension.end().await;
    }
    Ok(point)
}

/// So many node processes, all at once, as the original starts them.
pub async fn start_node(host: &NodeHost, count: usize) -> Result<Vec<NodeExtension>, CliError> {
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..count {
        let host = host.clone();
        starting.spawn(async move { host.start("growth", single::FIVE_MODULES).await });
    }
    starting.join_all().await.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_two_numbers() {
        assert_eq!("10x20".parse(), Ok(Size { sessions: 10, extensions: 20 }));
        for wrong in ["", "10", "x", "10x", "ax1", "1x2x3"] {
            assert!(wrong.parse::<Size>().is_err(), "{wrong}");
        }
    }
}
