//! One way of starting extensions in processes, measured in this process and those that it starts.

use std::path::Path;
use std::path::PathBuf;
use std::time::Instant;

use serde::Deserialize;
use serde::Serialize;
use serde_json::json;
use tenon_console::error::CliError;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::Status;
use tenon_host::session::ToolCall;

use crate::node_host::NodeExtension;
use crate::node_host::NodeHost;
use crate::process;
use crate::tenon::Tenon;

pub const MODULES: &str = "extension, five modules";
pub const CONFINED: &str = "the same in a sandbox";
const TRIVIAL: &str = "extension without imports";

/// What can be measured, in the order in which it is shown.
pub const CASES: [&str; 3] = [MODULES, CONFINED, TRIVIAL];

/// Loads before the measurement, for what is done once per process.
pub const WARM_UP: usize = 2;

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
pub async fn measure(tenon: &Tenon, case: &str, count: usize) -> Result<Single, CliError> {
    let count = count.max(1);
    match case {
        MODULES => processes(tenon, FIVE_MODULES, "", count).await,
        CONFINED => processes(tenon, FIVE_MODULES, CONFINED_CONFIG, count).await,
        TRIVIAL => processes(tenon, TRIVIAL_MODULE, "", count).await,
        other => Err(CliError::new(format!("there is no case \"{other}\""))),
    }
}

/// Measures one of [`CASES`] of a build of Tenon in a process of its own.
pub fn measure_in(tenon: &Tenon, case: &str, count: usize) -> Result<Single, CliError> {
    let output = std::process::Command::new(std::env::current_exe()?)
        .args(["start", "--single", case, "--count", &count.to_string(), "--tenon"])
        .arg(tenon.program())
        .output()?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(CliError::new(format!(
            "{case} of {} could not be measured: {text}",
            tenon.program().display()
        )));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// So many node processes, one after the other; all of them idle together.
pub async fn of_node(host: &NodeHost, count: usize) -> Result<Single, CliError> {
    let (mut running, mut together) = (Vec::new(), TotalMemory::default());
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
struct TotalMemory(Vec<(usize, f64)>);

impl TotalMemory {
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
async fn processes(
    tenon: &Tenon,
    source: &str,
    config: &str,
    count: usize,
) -> Result<Single, CliError> {
    let folder = tempfile::tempdir()?;
    let root = std::fs::canonicalize(folder.path())?;
    std::fs::create_dir(root.join("home"))?;
    std::fs::write(root.join("home").join("config.toml"), config)?;
    let isolates = tenon.isolates();
    let boot = isolates.probe().await.map_err(CliError::new)?;
    let zygote = isolates.pids().first().copied().unwrap_or_default();
    let boot = Zygote {
        ready_ms: boot.as_secs_f64() * 1e3,
        cpu_ms: process::cpu_ms(zygote),
        whole_mb: f64::NAN,
    };
    let (mut single, mut running) = (Single::default(), Vec::<Running>::new());
    let mut together = TotalMemory::default();
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
    if tenon.engine.name == "quickjs"
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

/// Writes an extension into a folder of its own; its entry file.
pub fn write_module(folder: &Path, number: usize, source: &str) -> Result<PathBuf, CliError> {
    let folder = folder.join(number.to_string());
    std::fs::create_dir_all(&folder)?;
    let entry = folder.join("extension.mjs");
    std::fs::write(&entry, source.replace("NAME", TOOL))?;
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_is_what_each_of_the_second_half_added() {
        assert_eq!(TotalMemory(vec![(5, 60.0), (10, 72.5)]).one_more_mb(), [2.5]);
        let mut one = TotalMemory::default();
        one.look(1, 1, || [std::process::id()].into_iter());
        assert!(one.one_more_mb().is_empty(), "one alone says nothing of one more");
        let mut ten = TotalMemory::default();
        (1..=10).for_each(|there| ten.look(there, 10, || [std::process::id()].into_iter()));
        assert_eq!(ten.one_more_mb().len(), 1);
    }
}
