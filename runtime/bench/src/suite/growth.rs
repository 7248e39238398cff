//! What one more costs when there are many: extensions in a session, sessions in a program.

use std::path::Path;
use std::time::Instant;

use serde_json::json;
use tenon_console::error::CliError;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::isolates::Isolates;
use tenon_host::session::EndReason;

use super::Plan;
use super::report::Bound;
use super::report::Growth;
use super::report::Point;
use super::report::Side;
use super::report::percentile;
use crate::args::Size;
use crate::measured;
use crate::node_host::NodeExtension;
use crate::node_host::NodeHost;
use crate::process;
use crate::process::Memory;
use crate::single;
use crate::tenon::Tenon;

/// How many extensions there are, one number after the other; the last is what is asked for.
const EXTENSIONS: [usize; 4] = [1, 10, 100, 500];

/// How many sessions, each with so many extensions.
const SESSIONS: [usize; 3] = [1, 10, 100];
const EXTENSIONS_EACH: usize = 10;

/// How many node processes. More would only take longer: they share nothing that could run out sooner.
const NODE: [usize; 3] = [1, 10, 50];

const OF_EXTENSIONS: &str = "extensions";
const OF_SESSIONS: &str = "sessions of 10 extensions";

/// Every extension is given this long. With a thousand at once the last one waits for all others.
const CONFIG: &str = "[extensions.\"*\"]\nstart-deadline-s = 120\n";

/// How many extensions there are, when there are so many at most.
fn counts(most: usize) -> impl Iterator<Item = usize> {
    EXTENSIONS.into_iter().filter(move |&count| count < most).chain([most])
}

fn session_counts(most: usize) -> impl Iterator<Item = usize> {
    SESSIONS.into_iter().filter(move |&count| count * EXTENSIONS_EACH <= most)
}

/// How many steps it takes.
pub fn steps(most: usize, has_node: bool) -> usize {
    let node = if has_node { NODE.len() } else { 0 };
    counts(most).count() + session_counts(most).count() + node
}

/// What many extensions at once may take, on each engine.
pub fn bounds(growth: &[Growth], engine: &str) -> Vec<Bound> {
    let of_extensions = |it: &&Growth| it.side == Side::Tenon && it.of == OF_EXTENSIONS;
    let points = growth.iter().filter(of_extensions).flat_map(|growth| &growth.points);
    let of = |point: &Point| match (engine, point.extensions) {
        ("v8", 1000) => vec![
            Bound::new("1,000 extensions at once: time until ready", point.ready_s, "s", 12.0),
            Bound::new("1,000 extensions: memory", point.memory_mb / 1e3, "GB", 1.8),
        ],
        ("quickjs", 100) => {
            vec![Bound::new("100 extensions at once: time until ready", point.ready_s, "s", 2.0)]
        }
        _ => Vec::new(),
    };
    points.flat_map(of).collect()
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
    for count in counts(most) {
        plan.step(&format!("{count} extensions"));
        points.push(point_in_a_process(
            plan.tenon,
            count,
            Size { sessions: 1, extensions: count },
        )?);
    }
    grown.push(Growth::new(OF_EXTENSIONS, Side::Tenon, points));
    let mut points = Vec::new();
    for count in session_counts(most) {
        plan.step(&format!("{count} sessions of {EXTENSIONS_EACH} extensions"));
        let size = Size { sessions: count, extensions: EXTENSIONS_EACH };
        points.push(point_in_a_process(plan.tenon, count, size)?);
    }
    grown.push(Growth::new(OF_SESSIONS, Side::Tenon, points));
    Ok(grown)
}

/// A process of its own for each point: none sees the memory of another.
fn point_in_a_process(tenon: &Tenon, count: usize, size: Size) -> Result<Point, CliError> {
    let Size { sessions, extensions } = size;
    let output = std::process::Command::new(std::env::current_exe()?)
        .args(["--point", &format!("{sessions}x{extensions}"), "--tenon"])
        .arg(tenon.program())
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(CliError::new(format!("{sessions} x {extensions} extensions failed: {text}")));
    }
    let point: Point = serde_json::from_slice(&output.stdout)?;
    Ok(Point { count, ..point })
}

/// Opens so many sessions in this process, and measures it, the zygote and the extensions' processes.
pub async fn point(tenon: &Tenon, size: Size) -> Result<Point, CliError> {
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
    let isolates = tenon.isolates();
    let started = Instant::now();
    let mut sessions = Vec::new();
    for _ in 0..size.sessions {
        sessions.push(open(&root, &isolates).await?);
    }
    let ready_s = started.elapsed().as_secs_f64();
    let mut point = held(size.sessions * size.extensions, ready_s, &isolates.pids(), true);
    let mut times = Vec::new();
    for session in &sessions {
        for number in 0..size.extensions {
            let started = Instant::now();
            let answer = measured::call(session, &tool(number)).await;
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

/// What processes hold together. The first may be the zygote; there is a session then, too, which is this process.
fn held(extensions: usize, ready_s: f64, pids: &[u32], has_zygote: bool) -> Point {
    let session = has_zygote.then(std::process::id);
    let all = || pids.iter().copied().chain(session);
    // Before memory is looked at, which takes its own time.
    let cpu: f64 = all().map(process::cpu_ms).sum();
    let memory: Vec<Memory> = pids.iter().copied().map(Memory::of).collect();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let memory_mb = megabytes(memory.iter().map(|it| it.whole()).sum());
    let private = memory.iter().skip(usize::from(has_zygote)).map(|it| megabytes(it.private));
    let entries = |folder| all().map(|pid| process::entries(pid, folder)).sum();
    Point {
        count: extensions,
        extensions,
        ready_s,
        cpu_ms_each: cpu / extensions as f64,
        memory_mb,
        memory_mb_each: memory_mb / extensions as f64,
        private_mb: process::median(private.collect()),
        zygote_mb: memory.first().filter(|_| has_zygote).map(|it| megabytes(it.whole())),
        session_mb: session.map(process::whole_mb),
        threads: entries("task"),
        files: entries("fd"),
        processes: all().count(),
        answered: 0,
        call_us: f64::NAN,
    }
}

async fn node_point(host: &NodeHost, count: usize) -> Result<Point, CliError> {
    let started = Instant::now();
    let mut running = start_node(host, count).await?;
    let ready_s = started.elapsed().as_secs_f64();
    let pids: Vec<u32> = running.iter().map(NodeExtension::pid).collect();
    let mut point = held(count, ready_s, &pids, false);
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
    fn the_last_number_is_the_one_that_was_asked_for() {
        assert_eq!(counts(1000).collect::<Vec<_>>(), [1, 10, 100, 500, 1000]);
        assert_eq!(counts(40).collect::<Vec<_>>(), [1, 10, 40]);
        assert_eq!(counts(1).collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn each_engine_has_bounds_for_the_number_they_are_about() {
        let points =
            [100, 1000].map(|count| Point { ready_s: 3.0, ..held(count, 3.0, &[], false) });
        let growth = [Growth::new(OF_EXTENSIONS, Side::Tenon, points.to_vec())];
        let kept = |engine| bounds(&growth, engine).iter().map(|it| it.kept).collect::<Vec<_>>();
        assert_eq!((kept("v8"), kept("quickjs")), (vec![true, true], vec![false]));
        let node = [Growth::new(OF_EXTENSIONS, Side::Node, points.to_vec())];
        assert!(bounds(&node, "v8").is_empty());
    }
}
