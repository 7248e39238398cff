//! Many sessions that share one zygote: what the first extension of each further session takes.

use std::time::Instant;

use tenon_console::error::CliError;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::session::EndReason;

use super::Plan;
use super::report::Figure;
use super::report::Samples;
use super::report::Side;
use super::report::Topic;
use crate::process;
use crate::single;
use crate::tenon::Tenon;

/// Sessions at the same time.
const SESSIONS: usize = 20;

const READY: Topic = ("sessions", "20 sessions: the first extension of one, until ready", "ms");
const MEMORY: Topic = ("sessions", "20 sessions: PSS and page tables of its process", "MB");
const ZYGOTE: Topic = ("sessions", "20 sessions: growth of the zygote for one", "kB");

const FIRST: &str = "the session that starts the zygote";
const FURTHER: &str = "each of 19 further sessions";

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Figure>, CliError> {
    let [mut first, mut further, mut memory, mut zygote] = [(); 4].map(|()| Samples::default());
    for _ in 0..plan.repetitions {
        plan.step("sessions");
        let taken = round(plan.tenon).await?;
        let (earliest, rest) = taken.ready_ms.split_at(1);
        first.add(earliest.to_vec());
        further.add(rest.to_vec());
        memory.add(taken.memory_mb);
        zygote.add(vec![taken.zygote_kb]);
    }
    Ok(vec![
        first.figure(READY, Side::Tenon, FIRST),
        further.figure(READY, Side::Tenon, FURTHER),
        memory.figure(MEMORY, Side::Tenon, FURTHER),
        zygote.figure(ZYGOTE, Side::Tenon, FURTHER),
    ])
}

/// What one round took, session by session.
struct Taken {
    ready_ms: Vec<f64>,
    memory_mb: Vec<f64>,
    zygote_kb: f64,
}

/// All sessions, one after the other, with a new zygote. Each finds it by its socket, as sessions of different
/// processes do.
async fn round(tenon: &Tenon) -> Result<Taken, CliError> {
    let folder = tempfile::tempdir()?;
    let root = std::fs::canonicalize(folder.path())?;
    let extension = root.join("extensions").join("first");
    std::fs::create_dir_all(&extension)?;
    std::fs::write(extension.join("extension.mjs"), single::FIVE_MODULES)?;
    let (mut sessions, mut ready_ms, mut pids) = (Vec::new(), Vec::new(), Vec::new());
    let (mut zygotes, mut zygote_before) = (Vec::new(), 0);
    for _ in 0..SESSIONS {
        let isolates = Isolates::processes(tenon.program().to_owned(), Some(root.join("zygote")));
        let options = SessionOptions {
            extension_folders: vec![root.join("extensions")],
            isolates: isolates.clone(),
            ..SessionOptions::new(root.clone(), root.join("home"))
        };
        let started = Instant::now();
        let session = Session::new(options)?;
        session.load().await;
        ready_ms.push(started.elapsed().as_secs_f64() * 1e3);
        let info = session.list().into_iter().find(|info| info.status == Status::Running);
        let pid = info.and_then(|info| info.pid);
        pids.push(pid.ok_or_else(|| CliError::new("the extension of a session does not run"))?);
        // The pong says which process the zygote is.
        isolates.probe().await.map_err(CliError::new)?;
        zygotes.extend(isolates.pids().first().copied());
        sessions.push(session);
        if sessions.len() == 1 {
            zygote_before = anonymous(&zygotes);
        }
    }
    zygotes.dedup();
    if zygotes.len() != 1 {
        return Err(CliError::new(format!("the sessions have {} zygotes", zygotes.len())));
    }
    let grown = anonymous(&zygotes).saturating_sub(zygote_before);
    let memory_mb = pids.iter().skip(1).map(|&pid| process::whole_mb(pid)).collect();
    for session in sessions {
        session.end(EndReason::Complete).await;
    }
    Ok(Taken { ready_ms, memory_mb, zygote_kb: grown as f64 / 1e3 / (SESSIONS - 1) as f64 })
}

/// Memory that the zygote made, shared with its forks or not.
fn anonymous(zygotes: &[u32]) -> u64 {
    zygotes.first().map_or(0, |&pid| process::Memory::of(pid).anonymous)
}
