//! A script that only computes: whether a fork of the zygote is as fast as an engine of its own.

use std::path::Path;

use serde_json::json;
use tenon_console::error::CliError;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::session::EndReason;
use tenon_host::session::ToolCall;

use super::Plan;
use super::report::Figure;
use super::report::Samples;
use super::report::Side;
use super::report::Topic;
use crate::in_process::InProcess;
use crate::measured;

/// Rounds of the work in a repetition.
const ROUNDS: usize = 5;

const WORK: Topic = ("compute", "a script that computes: calls, JSON, a map, a sort", "ms");

/// Says how long its work took, by its own clock.
const SOURCE: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
const fib = (n) => n < 2 ? n : fib(n - 1) + fib(n - 2);
function work() {
  const started = performance.now();
  fib(24);
  const rows = Array.from({ length: 4000 }, (_, i) => ({ id: (i * 7919) % 4001, name: `row ${i}` }));
  const copy = JSON.parse(JSON.stringify(rows));
  copy.sort((a, b) => a.id - b.id);
  const byName = new Map(copy.map((row) => [row.name, row.id]));
  if (byName.size !== rows.length || copy[0].id !== 0) throw new Error("the work is wrong");
  return String(performance.now() - started);
}
await joinSession({ tools: [{ name: "work", description: "x", handler: work }] });
"#;

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Figure>, CliError> {
    let folder = tempfile::tempdir()?;
    let forked = session(folder.path(), plan.tenon.isolates()).await?;
    let mut in_process = match &plan.in_process {
        Some(program) => Some(InProcess::start(program)?),
        None => None,
    };
    let mut node = match &plan.node {
        Some(host) => Some(host.start("compute", SOURCE).await?),
        None => None,
    };
    let [mut ours, mut threads, mut theirs] = [(); 3].map(|()| Samples::default());
    // The first is for compilers and caches.
    for repetition in 0..=plan.repetitions {
        if repetition > 0 {
            plan.step("compute");
        }
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            if let Some(node) = &mut node {
                let answer = node.call("work", json!({})).await?;
                times[0].push(milliseconds(answer.as_str().unwrap_or_default())?);
            }
            times[1].push(of_session(&forked).await?);
            if let Some(threads) = &mut in_process {
                times[2].push(threads.compute().await?);
            }
        }
        if repetition > 0 {
            let [node, forked, in_process] = times;
            theirs.add(node);
            ours.add(forked);
            threads.add(in_process);
        }
    }
    forked.end(EndReason::Complete).await;
    let node = node.map(|_| theirs.figure(WORK, Side::Node, "node process + SDK"));
    let tenon = ours.figure(WORK, Side::Tenon, "Tenon");
    let in_process =
        in_process.map(|_| threads.figure(WORK, Side::Tenon, "Tenon, a thread in process"));
    Ok(node.into_iter().chain([tenon]).chain(in_process).collect())
}

/// A session with the extension that computes.
pub async fn session(folder: &Path, isolates: Isolates) -> Result<Session, CliError> {
    measured::session_in(folder, [("work".to_owned(), SOURCE.to_owned())], isolates).await
}

/// Lets the extension compute; how long it says that it took, in milliseconds.
pub async fn of_session(session: &Session) -> Result<f64, CliError> {
    let outcome = session.call_tool(ToolCall::new("work", json!({}))).await;
    let outcome = outcome.map_err(|error| CliError::new(error.to_string()))?;
    milliseconds(&outcome.result.text_result_for_llm)
}

fn milliseconds(answer: &str) -> Result<f64, CliError> {
    answer.parse().map_err(|_| CliError::new(format!("the work was answered with {answer:?}")))
}
