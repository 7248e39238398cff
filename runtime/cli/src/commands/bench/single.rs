//! One case, measured in this process.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::mpsc;
use std::time::Instant;

use serde::Deserialize;
use serde::Serialize;
use serde_json::json;
use tenon_protocol::engine::Engine;
use tenon_protocol::engine::EngineIsolate;
use tenon_protocol::engine::Spare;
use tenon_protocol::limits;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::Grant;
use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::ReadyReport;
use tenon_protocol::message::ToIsolate;

use super::process;
use crate::error::CliError;

pub const BARE: &str = "bare isolate, no platform";
const TRIVIAL: &str = "extension without imports";
pub const MODULES: &str = "extension, five modules";
pub const SPARE: &str = "the same from a warm spare";

/// What can be measured, in the order in which it is shown.
pub const CASES: [&str; 4] = [MODULES, SPARE, TRIVIAL, BARE];

/// Loads before the measurement, for what is done once per process.
const WARM_UP: usize = 2;

const TRIVIAL_MODULE: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "NAME", description: "x", handler: () => "x" }] });
"#;

/// An extension as most are: it uses files, processes and the network.
pub const FIVE_MODULES: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
import path from "node:path";
import fs from "node:fs";
import { execFile } from "node:child_process";
import http from "node:http";
import { createHash } from "node:crypto";
const used = [joinSession, path.join, fs.readFileSync, execFile, http.createServer, createHash];
if (used.some((f) => typeof f !== "function")) throw new Error("a module is not whole");
await joinSession({ tools: [{ name: "NAME", description: "x", handler: () => "x" }] });
"#;

/// What was measured of a case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Single {
    /// Wall time until ready in milliseconds, one after the other.
    pub ready_ms: Vec<f64>,
    /// CPU time until ready in milliseconds: of all threads, but from a spare of its own thread alone,
    /// because the others make the next spare then.
    pub cpu_ms: Vec<f64>,
    /// Private memory of one more when idle, in megabytes.
    pub private_mb: f64,
}

/// Measures one of [`CASES`] in this process.
pub async fn measure(case: &str, count: usize) -> Result<Single, CliError> {
    match case {
        BARE => Ok(bare(linked_engine()?, count)),
        TRIVIAL => extensions(TRIVIAL_MODULE, Spare::None, count).await,
        MODULES => extensions(FIVE_MODULES, Spare::None, count).await,
        SPARE => extensions(FIVE_MODULES, Spare::Keep, count).await,
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

async fn extensions(source: &str, spare: Spare, count: usize) -> Result<Single, CliError> {
    let folder = tempfile::tempdir()?;
    let launcher = (linked_engine()?.launcher)(spare);
    let mut isolates = Vec::new();
    let mut reports = Vec::new();
    let mut before = 0;
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = process::private_bytes(std::process::id());
            reports.clear();
        }
        if spare == Spare::Keep {
            launcher.spare_is_warm().await;
        }
        let entry = write_module(folder.path(), number, source)?;
        let (started, cpu) = (Instant::now(), process::cpu_ms(std::process::id()));
        let (isolate, report) = start(&*launcher, entry, folder.path()).await?;
        let ready = started.elapsed().as_secs_f64() * 1000.0;
        let cpu = match spare {
            Spare::None => process::cpu_ms(std::process::id()) - cpu,
            Spare::Keep => report.cpu_us as f64 / 1000.0,
        };
        reports.push((ready, cpu));
        isolates.push(isolate);
    }
    // The spare that waits is one of the isolates: it must be whole when memory is counted.
    if spare == Spare::Keep {
        launcher.spare_is_warm().await;
    }
    let after = process::private_bytes(std::process::id());
    let (ready_ms, cpu_ms) = reports.into_iter().unzip();
    let private_mb = after.saturating_sub(before) as f64 / count as f64 / 1e6;
    Ok(Single { ready_ms, cpu_ms, private_mb })
}

fn write_module(folder: &Path, number: usize, source: &str) -> Result<PathBuf, CliError> {
    let folder = folder.join(number.to_string());
    std::fs::create_dir(&folder)?;
    let entry = folder.join("extension.mjs");
    std::fs::write(&entry, source.replace("NAME", &format!("tool_{number}")))?;
    Ok(entry)
}

/// Starts one extension and lets it join.
async fn start(
    launcher: &dyn Engine,
    entry: PathBuf,
    cwd: &Path,
) -> Result<(Box<dyn EngineIsolate>, ReadyReport), CliError> {
    let spec = LoadSpec {
        id: "bench".into(),
        entry,
        cwd: cwd.to_owned(),
        env: std::env::vars().collect(),
        grant: Grant::default(),
        sandbox_required: false,
        limits: limits::default_limits(),
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
            FromIsolate::Ready(report) => return Ok((isolate, report)),
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
    let mut times = Vec::new();
    let mut threads = Vec::new();
    let mut before = 0;
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = process::private_bytes(std::process::id());
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
    let after = process::private_bytes(std::process::id());
    release.wait();
    for thread in threads {
        // A thread that panicked has sent no time and shows as zero.
        let _ = thread.join();
    }
    let (ready_ms, cpu_ms) = times.into_iter().unzip();
    let private_mb = after.saturating_sub(before) as f64 / count as f64 / 1e6;
    Single { ready_ms, cpu_ms, private_mb }
}
