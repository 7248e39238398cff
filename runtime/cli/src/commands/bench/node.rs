//! The thing to compare with: one node process per extension, with the public SDK from npm.

use std::io::BufRead;
use std::io::BufReader;
use std::path::Path;
use std::path::PathBuf;
use std::process::Child;
use std::process::Command;
use std::process::Stdio;
use std::time::Instant;

use super::process;
use super::start::Measurement;
use crate::args::BenchStart;

/// The release of the SDK whose contract ours follows.
const SDK: &str = "@github/copilot-sdk@1.0.14";

/// What such an extension's process runs: the SDK, the usual modules, then waiting.
const MODULE: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
import path from "node:path";
import fs from "node:fs";
import { execFile } from "node:child_process";
import http from "node:http";
import { createHash } from "node:crypto";
const used = [joinSession, path.join, fs.readFileSync, execFile, http.createServer, createHash];
if (used.some((f) => typeof f !== "function")) throw new Error("a module is not whole");
setInterval(() => {}, 1 << 30);
console.log("ready");
"#;

/// Starts the processes one after the other, measures each, and all of them idle together.
pub fn measure(bench: &BenchStart, home: &Path) -> Result<Measurement, String> {
    let folder = sdk_folder(bench.sdk.as_deref(), home)?;
    let module = folder.join("tenon-bench.mjs");
    std::fs::write(&module, MODULE).map_err(|error| error.to_string())?;
    let mut running = Processes(Vec::new());
    let mut ready = Vec::new();
    let mut cpu = Vec::new();
    for _ in 0..bench.count {
        let before = Instant::now();
        let mut child = Command::new("node")
            .arg(&module)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("node cannot be started: {error}"))?;
        let output = child.stdout.take();
        let id = child.id();
        running.0.push(child);
        let mut line = String::new();
        if let Some(output) = output {
            BufReader::new(output).read_line(&mut line).map_err(|error| error.to_string())?;
        }
        if line.trim() != "ready" {
            return Err("the node process failed to load the SDK".to_owned());
        }
        ready.push(before.elapsed().as_secs_f64() * 1000.0);
        cpu.push(process::cpu_ms(id));
    }
    let private: Vec<f64> =
        running.0.iter().map(|child| process::private_bytes(child.id()) as f64 / 1e6).collect();
    Ok(Measurement {
        case: "node process, five modules".into(),
        engine: "node".into(),
        count: bench.count,
        ready_ms: process::median(ready),
        cpu_ms: process::median(cpu),
        private_mb: process::median(private),
    })
}

/// Ended when the measurement is over, also when it fails.
struct Processes(Vec<Child>);

impl Drop for Processes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended already needs no killing.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A folder with the SDK in its `node_modules`; installed if it is not there.
pub fn sdk_folder(given: Option<&Path>, home: &Path) -> Result<PathBuf, String> {
    let folder = given.map_or_else(|| home.join("bench"), Path::to_owned);
    if folder.join("node_modules/@github/copilot-sdk").is_dir() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let installed = Command::new("npm")
        .args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"])
        .arg(&folder)
        .arg(SDK)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("npm cannot be started: {error}"))?;
    if !installed.status.success() {
        return Err(format!("npm could not install {SDK}"));
    }
    Ok(folder)
}
