//! One case, measured in this process.

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Barrier;
use std::sync::mpsc;
use std::time::Instant;

use serde_json::json;
use tenon_host::isolate::Isolate;
use tenon_host::isolate::Launcher;
use tenon_host::isolate::Spare;
use tenon_host::isolate::engine_info;
use tenon_host::isolate::floor;
use tenon_host::isolate::limits;
use tenon_host::isolate::message::FromIsolate;
use tenon_host::isolate::message::Grant;
use tenon_host::isolate::message::LoadSpec;
use tenon_host::isolate::message::ReadyReport;
use tenon_host::isolate::message::ToIsolate;

use super::process;
use super::start::Measurement;
use crate::error::CliError;

const BARE: &str = "bare isolate, no platform";
const TRIVIAL: &str = "extension without imports";
const MODULES: &str = "extension, five modules";
const SPARE: &str = "the same from a warm spare";

/// What can be measured, in the order in which it is shown.
pub const CASES: [&str; 4] = [MODULES, SPARE, TRIVIAL, BARE];

/// Loads before the measurement, for what is done once per process.
const WARM_UP: usize = 2;

const TRIVIAL_MODULE: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "NAME", description: "x", handler: () => "x" }] });
"#;

const FIVE_MODULES: &str = r#"
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

/// Measures one of [`CASES`].
pub async fn measure(case: &str, count: usize) -> Result<Measurement, CliError> {
    match case {
        BARE => Ok(bare(count)),
        TRIVIAL => extensions(case, TRIVIAL_MODULE, Spare::None, count).await,
        MODULES => extensions(case, FIVE_MODULES, Spare::None, count).await,
        SPARE => extensions(case, FIVE_MODULES, Spare::Keep, count).await,
        other => Err(CliError::new(format!("there is no case \"{other}\""))),
    }
}

async fn extensions(
    case: &str,
    source: &str,
    spare: Spare,
    count: usize,
) -> Result<Measurement, CliError> {
    let folder = tempfile::tempdir()?;
    let launcher = Launcher::new(spare);
    let mut isolates = Vec::new();
    let mut reports = Vec::new();
    let mut before = 0;
    for number in 0..WARM_UP + count {
        if number == WARM_UP {
            before = process::private_bytes(std::process::id());
            reports.clear();
        }
        if spare == Spare::Keep {
            launcher.wait_for_spare().await;
        }
        let entry = write_module(folder.path(), number, source)?;
        let started = Instant::now();
        let (isolate, report) = start(&launcher, entry, folder.path()).await?;
        reports.push((started.elapsed().as_secs_f64() * 1000.0, report.cpu_us as f64 / 1000.0));
        isolates.push(isolate);
    }
    // The spare that waits is one of the isolates: it must be whole when memory is counted.
    if spare == Spare::Keep {
        launcher.wait_for_spare().await;
    }
    let after = process::private_bytes(std::process::id());
    let (ready, cpu) = reports.into_iter().unzip();
    Ok(Measurement {
        case: case.to_owned(),
        engine: engine_info().name.to_owned(),
        count,
        ready_ms: process::median(ready),
        cpu_ms: process::median(cpu),
        private_mb: after.saturating_sub(before) as f64 / count as f64 / 1e6,
    })
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
    launcher: &Launcher,
    entry: PathBuf,
    cwd: &Path,
) -> Result<(Isolate, ReadyReport), CliError> {
    let spec = LoadSpec {
        id: "bench".into(),
        entry,
        cwd: cwd.to_owned(),
        env: std::env::vars().collect(),
        grant: Grant::default(),
        limits: limits::default_limits(),
    };
    let (sender, mut messages) = tokio::sync::mpsc::unbounded_channel();
    let isolate = launcher
        .start(spec, move |message| drop(sender.send(message)))
        .map_err(|error| CliError::new(error.to_string()))?;
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
            FromIsolate::Reply { .. }
            | FromIsolate::Loaded { .. }
            | FromIsolate::EventsSeen
            | FromIsolate::Log(_) => {}
        }
    }
    Err(CliError::new("an extension ended without a word"))
}

/// The engine alone, one instance per thread, all idle at the end.
fn bare(count: usize) -> Measurement {
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
            floor::bare_isolate(|| {
                let _ = sender.send(floor::thread_cpu_time());
                release.wait();
            });
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
    let (ready, cpu) = times.into_iter().unzip();
    Measurement {
        case: BARE.to_owned(),
        engine: engine_info().name.to_owned(),
        count,
        ready_ms: process::median(ready),
        cpu_ms: process::median(cpu),
        private_mb: after.saturating_sub(before) as f64 / count as f64 / 1e6,
    }
}
