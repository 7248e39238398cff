//! One way of starting extensions, measured in this process and those that it starts.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::mpsc;
use std::time::Instant;

use serde::Deserialize;
use serde::Serialize;
use serde_json::json;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::session::ToolCall;
use tenon_protocol::engine::Engine;
use tenon_protocol::engine::EngineIsolate;
use tenon_protocol::engine::Spare;
use tenon_protocol::limits;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::Grant;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::Outside;
use tenon_protocol::message::ToIsolate;

use super::node_host::NodeExtension;
use super::node_host::NodeHost;
use super::process;
use super::process::Memory;
use crate::error::CliError;

pub const MODULES: &str = "extension, five modules";
pub const CONFINED: &str = "the same in a sandbox";
const TRIVIAL: &str = "extension without imports";
const IN_PROCESS: &str = "five modules, a thread in process";
pub const BARE: &str = "bare isolate, no platform";

/// What can be measured, in the order in which it is shown.
pub const CASES: [&str; 5] = [MODULES, CONFINED, TRIVIAL, IN_PROCESS, BARE];

/// Loads before the measurement, for what is done once per process.
const WARM_UP: usize = 2;

/// Calls after which memory is measured again, and how many extensions are called so often.
const CALLS: usize = 1000;
const CALLED: usize = 3;

/// What puts extensions into a sandbox: they may touch the workspace and nothing else.
const CONFINED_CONFIG: &str = "[extensions.\"*\"]\nprofile = \"workspace\"\n";

/// The tool of the extensions here.
const TOOL: &str = "work";

const TRIVIAL_MODULE: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "NAME", description: "x", handler: () => "x" }] });
"#;

/// An extension as most are: it uses files, processes and the network. Asked to, it makes garbage until the engine
/// has collected some.
pub const FIVE_MODULES: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
import path from "node:path";
import fs from "node:fs";
import { execFile } from "node:child_process";
import http from "node:http";
import { createHash } from "node:crypto";
const used = [joinSession, path.join, fs.readFileSync, execFile, http.createServer, createHash];
if (used.some((f) => typeof f !== "function")) throw new Error("a module is not whole");
const cycle = () => { const a = {}; a.a = a; return a; };
const pause = () => new Promise((resolve) => setTimeout(resolve));
async function collected() {
  const lost = new WeakRef(cycle());
  for (let round = 0; round < 2000; round += 1) {
    await pause();
    for (let i = 0; i < 5000; i += 1) cycle();
    await pause();
    if (lost.deref() === undefined) return "collected";
  }
  return "not collected";
}
const handler = ({ collect }) => collect ? collected() : "x";
await joinSession({ tools: [{ name: "NAME", description: "x", handler }] });
"#;

/// What was measured of a case. An empty list was not measured.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Single {
    /// Wall time until ready in milliseconds, one after the other.
    pub ready_ms: Vec<f64>,
    /// CPU time until ready in milliseconds: of the extension's process, and of the zygote for the fork.
    pub cpu_ms: Vec<f64>,
    /// CPU time of the session meanwhile, in milliseconds.
    pub session_cpu_ms: Vec<f64>,
    /// Private memory of each when idle, in megabytes.
    pub private_mb: Vec<f64>,
    /// Private memory, a share of what is shared (PSS) and page tables of each when idle, in megabytes.
    pub whole_mb: Vec<f64>,
    /// By how much the same grows for all processes together when there is one more, in megabytes: what is shared
    /// already does not count again.
    pub one_more_mb: Vec<f64>,
    /// Private memory of some after a thousand calls, in megabytes.
    pub called_mb: Vec<f64>,
    /// Private memory of one after a garbage collection, in megabytes. Only of an engine whose collector writes to
    /// every object, so that it ends the sharing with the zygote.
    pub collected_mb: Vec<f64>,
    /// What the zygote took, once.
    pub zygote: Option<Zygote>,
}

/// What a zygote takes before the first extension, and holds beside them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Zygote {
    /// Wall time until it answers, in milliseconds.
    pub ready_ms: f64,
    /// CPU time until then, in milliseconds.
    pub cpu_ms: f64,
    /// Its share of memory beside the extensions (PSS), with page tables, in megabytes.
    pub whole_mb: f64,
}

/// Measures one of [`CASES`] in this process.
pub async fn measure(case: &str, count: usize) -> Result<Single, CliError> {
    let count = count.max(1);
    match case {
        BARE => Ok(bare(linked_engine()?, count)),
        IN_PROCESS => in_process(count).await,
        MODULES => processes(FIVE_MODULES, "", count).await,
        CONFINED => processes(FIVE_MODULES, CONFINED_CONFIG, count).await,
        TRIVIAL => processes(TRIVIAL_MODULE, "", count).await,
        other => Err(CliError::new(format!("there is no case \"{other}\""))),
    }
}

/// The engine that this program was linked with.
pub fn linked_engine() -> Result<crate::engine::Engine, CliError> {
    crate::engine::get().copied().ok_or_else(|| CliError::new("this program has no engine"))
}

/// Measures one of [`CASES`] in a process of its own, of this or another build of the program.
pub fn measure_in(program: &Path, case: &str, count: usize) -> Result<Single, CliError> {
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

/// So many node processes, one after the other; all of them idle together.
pub async fn of_node(host: &NodeHost, count: usize) -> Result<Single, CliError> {
    let (mut running, mut together) = (Vec::new(), Together::default());
    for _ in 0..count.max(1) {
        running.push(host.start("start", FIVE_MODULES).await?);
        together.look(running.len(), count, || running.iter().map(NodeExtension::pid));
    }
    let mut single = Single {
        ready_ms: running.iter().map(|it| it.ready_ms).collect(),
        cpu_ms: running.iter().map(|it| it.cpu_ms).collect(),
        private_mb: running.iter().map(|it| process::private_mb(it.pid())).collect(),
        whole_mb: running.iter().map(|it| process::whole_mb(it.pid())).collect(),
        one_more_mb: together.one_more_mb(),
        ..Single::default()
    };
    for extension in running.iter_mut().take(CALLED) {
        for _ in 0..CALLS {
            extension.call("NAME", json!({})).await?;
        }
        single.called_mb.push(process::private_mb(extension.pid()));
    }
    for extension in running {
        extension.end().await;
    }
    Ok(single)
}

/// Memory of several processes together, when half of them are there and when all are.
#[derive(Default)]
struct Together(Vec<(usize, f64)>);

impl Together {
    /// Looks at the processes if so many of them are half or all.
    fn look<P: Iterator<Item = u32>>(&mut self, there: usize, all: usize, pids: impl Fn() -> P) {
        if there == all / 2 || there == all {
            self.0.push((there, pids().map(process::whole_mb).sum()));
        }
    }

    /// What each of the second half added.
    fn one_more_mb(&self) -> Vec<f64> {
        match self.0[..] {
            [(half, before), (all, after)] => vec![(after - before) / (all - half) as f64],
            _ => Vec::new(),
        }
    }
}

/// An extension of a session of its own.
struct Running {
    session: Session,
    pid: u32,
}

impl Running {
    async fn call(&self, arguments: serde_json::Value) -> Result<String, CliError> {
        let outcome = self.session.call_tool(ToolCall::new(TOOL, arguments)).await;
        let outcome = outcome.map_err(|error| CliError::new(error.to_string()))?;
        Ok(outcome.result.text_result_for_llm)
    }
}

/// Extensions as the program has them: each in a process that the zygote forks, here each of a session of its own, so
/// that they are started one after the other.
async fn processes(source: &str, config: &str, count: usize) -> Result<Single, CliError> {
    let folder = tempfile::tempdir()?;
    let root = std::fs::canonicalize(folder.path())?;
    std::fs::create_dir(root.join("home"))?;
    std::fs::write(root.join("home").join("config.toml"), config)?;
    let isolates = Isolates::processes(std::env::current_exe()?, None);
    let boot = isolates.probe().await.map_err(CliError::new)?;
    let zygote = isolates.pids().first().copied().unwrap_or_default();
    let boot = Zygote {
        ready_ms: boot.as_secs_f64() * 1e3,
        cpu_ms: process::cpu_ms(zygote),
        whole_mb: f64::NAN,
    };
    let (mut single, mut running) = (Single::default(), Vec::<Running>::new());
    let mut together = Together::default();
    for number in 0..WARM_UP + count {
        let extensions = root.join(number.to_string());
        write_module(&extensions, 0, source)?;
        let options = SessionOptions {
            extension_folders: vec![extensions],
            isolates: isolates.clone(),
            ..SessionOptions::new(root.clone(), root.join("home"))
        };
        let session = Session::new(options)?;
        let before = [std::process::id(), zygote].map(process::cpu_ms);
        let started = Instant::now();
        session.load().await;
        let ready = started.elapsed().as_secs_f64() * 1e3;
        let after = [std::process::id(), zygote].map(process::cpu_ms);
        let pid = only_one(&session)?;
        if number < WARM_UP {
            session.end(tenon_host::session::EndReason::Complete).await;
            continue;
        }
        single.ready_ms.push(ready);
        single.cpu_ms.push(process::cpu_ms(pid) + after[1] - before[1]);
        single.session_cpu_ms.push(after[0] - before[0]);
        running.push(Running { session, pid });
        // The session is the same program and shares its code, so it is looked at with them.
        together.look(running.len(), count, || {
            running.iter().map(|it| it.pid).chain([zygote, std::process::id()])
        });
    }
    single.one_more_mb = together.one_more_mb();
    single.private_mb = running.iter().map(|it| process::private_mb(it.pid)).collect();
    single.whole_mb = running.iter().map(|it| process::whole_mb(it.pid)).collect();
    single.zygote = Some(Zygote { whole_mb: process::whole_mb(zygote), ..boot });
    for extension in running.iter().take(CALLED) {
        for _ in 0..CALLS {
            extension.call(json!({})).await?;
        }
        single.called_mb.push(process::private_mb(extension.pid));
    }
    if crate::engine::info().name == "quickjs"
        && source == FIVE_MODULES
        && let Some(last) = running.last()
    {
        if last.call(json!({ "collect": true })).await? != "collected" {
            return Err(CliError::new("the engine collected no garbage"));
        }
        single.collected_mb.push(process::private_mb(last.pid));
    }
    Ok(single)
}

/// The process of a session's only extension, which must run.
fn only_one(session: &Session) -> Result<u32, CliError> {
    let info = session.list().into_iter().next();
    let info = info.ok_or_else(|| CliError::new("an extension was not found"))?;
    match (info.status, info.pid) {
        (Status::Running, Some(pid)) => Ok(pid),
        _ => {
            let why = info.error.map(|error| error.what.message).unwrap_or_default();
            Err(CliError::new(format!("an extension does not run: {why}")))
        }
    }
}

/// Extensions as a program has them that embeds the session: threads of this process.
async fn in_process(count: usize) -> Result<Single, CliError> {
    let folder = tempfile::tempdir()?;
    let launcher = (linked_engine()?.launcher)(Spare::None);
    let (mut isolates, mut times, mut before) = (Vec::new(), Vec::new(), Memory::default());
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = Memory::of(std::process::id());
            times.clear();
        }
        let entry = write_module(folder.path(), number, FIVE_MODULES)?;
        let (started, cpu) = (Instant::now(), process::cpu_ms(std::process::id()));
        isolates.push(start(&*launcher, entry, folder.path()).await?);
        let cpu = process::cpu_ms(std::process::id()) - cpu;
        times.push((started.elapsed().as_secs_f64() * 1e3, cpu));
    }
    Ok(Single::of_threads(times, before))
}

impl Single {
    /// What threads of this process took, whose memory is what it has grown by.
    fn of_threads(times: Vec<(f64, f64)>, before: Memory) -> Self {
        let (after, count) = (Memory::of(std::process::id()), times.len() as f64);
        let each = |pick: fn(Memory) -> u64| {
            vec![pick(after).saturating_sub(pick(before)) as f64 / count / 1e6]
        };
        let (ready_ms, cpu_ms) = times.into_iter().unzip();
        let (private_mb, whole_mb) = (each(|memory| memory.private), each(Memory::whole));
        Self { ready_ms, cpu_ms, private_mb, whole_mb, ..Self::default() }
    }
}

fn write_module(folder: &Path, number: usize, source: &str) -> Result<PathBuf, CliError> {
    let folder = folder.join(number.to_string());
    std::fs::create_dir_all(&folder)?;
    let entry = folder.join("extension.mjs");
    std::fs::write(&entry, source.replace("NAME", TOOL))?;
    Ok(entry)
}

/// Starts one extension in this process and lets it join.
async fn start(
    launcher: &dyn Engine,
    entry: PathBuf,
    cwd: &Path,
) -> Result<Box<dyn EngineIsolate>, CliError> {
    let spec = LoadSpec {
        id: "bench".into(),
        entry,
        cwd: cwd.to_owned(),
        env: std::env::vars().collect(),
        grant: Grant::default(),
        sandbox_required: false,
        limits: limits::default_limits(),
        outside: Outside::default(),
    };
    let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let isolate = launcher
        .start(spec, Box::new(move |message| drop(sender.send(message))))
        .map_err(CliError::new)?;
    while let Some(message) = messages.recv().await {
        match message {
            FromIsolate::Request { request, .. } => {
                isolate
                    .send(ToIsolate::Answer { request, result: Ok(json!({ "sessionId": "s" })) });
            }
            FromIsolate::Ready(_) => return Ok(isolate),
            FromIsolate::Ended(reason) => {
                return Err(CliError::new(format!("an extension ended: {reason:?}")));
            }
            FromIsolate::Started { .. }
            | FromIsolate::Measured(_)
            | FromIsolate::Reply { .. }
            | FromIsolate::Loaded { .. }
            | FromIsolate::EventsSeen
            | FromIsolate::Log(_) => {}
        }
    }
    Err(CliError::new("an extension ended without a word"))
}

/// The engine alone, one instance per thread, all idle at the end.
fn bare(engine: crate::engine::Engine, count: usize) -> Single {
    let release = Arc::new(Barrier::new(WARM_UP + count + 1));
    let (mut times, mut threads, mut before) = (Vec::new(), Vec::new(), Memory::default());
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = Memory::of(std::process::id());
            times.clear();
        }
        let (sender, receiver) = mpsc::channel();
        let release = release.clone();
        let started = Instant::now();
        threads.push(std::thread::spawn(move || {
            (engine.bare_isolate)(Box::new(move || {
                let _ = sender.send((engine.thread_cpu_time)());
                release.wait();
            }));
        }));
        let cpu = receiver.recv().unwrap_or_default();
        times.push((started.elapsed().as_secs_f64() * 1000.0, cpu.as_secs_f64() * 1000.0));
    }
    let single = Single::of_threads(times, before);
    release.wait();
    for thread in threads {
        // A thread that panicked has sent no time and shows as zero.
        let _ = thread.join();
    }
    single
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_is_what_each_of_the_second_half_added() {
        assert_eq!(Together(vec![(5, 60.0), (10, 72.5)]).one_more_mb(), [2.5]);
        let mut one = Together::default();
        one.look(1, 1, || [std::process::id()].into_iter());
        assert!(one.one_more_mb().is_empty(), "one alone says nothing of one more");
        let mut ten = Together::default();
        (1..=10).for_each(|there| ten.look(there, 10, || [std::process::id()].into_iter()));
        assert_eq!(ten.one_more_mb().len(), 1);
    }
}
