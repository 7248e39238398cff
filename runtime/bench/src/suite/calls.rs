//! A tool call, one with long arguments, and one through the hooks of several extensions.

use std::path::Path;
use std::time::Instant;

use serde_json::Value;
use serde_json::json;
use tenon_console::error::CliError;
use tenon_host::Isolates;
use tenon_host::Session;
use tenon_host::session::EndReason;
use tenon_host::session::ToolCall;

use super::Plan;
use super::ping_pong;
use super::ping_pong::PingPong;
use super::report::Figure;
use super::report::Samples;
use super::report::Side;
use super::report::Topic;
use crate::in_process::InProcess;
use crate::measured;
use crate::node_host::NodeExtension;

/// Calls of each kind in a repetition.
const CALLS: usize = 500;

/// Calls with long arguments in a repetition.
const LARGE_CALLS: usize = 150;

/// Rows of the long arguments, which make them 64 KB of JSON with many small parts, as a list of search results has.
const LARGE_ROWS: usize = 1_000;

/// Calls through hooks in a repetition; each is eleven crossings.
const HOOKED_CALLS: usize = 150;

/// Extensions with a hook before and one after every call.
pub const HOOKS: usize = 5;

/// Calls of each kind before the measurement, for compilers and caches.
const WARM_UP: usize = 300;

pub const CALL: Topic = ("call", "tool call", "us");
const LARGE: Topic = ("call", "tool call with 64 KB of arguments", "us");
const HOOKED: Topic = ("hooks", "tool call through 5 + 5 hooks", "us");

pub const THROUGH: &str = "Tenon";
pub const PING_PONG: &str = "ping-pong of the same bytes";

/// An extension with a tool that answers with its argument.
pub const TOOL: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "echo", description: "x", handler: ({ text }) => text }] });
"#;

const HOOK: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
let calls = 0;
await joinSession({
  hooks: {
    onPreToolUse: ({ toolName }) => { calls += toolName === "echo" ? 1 : 0; },
    onPostToolUse: ({ toolResult }) => { calls += toolResult.textResultForLlm.length; },
  },
});
"#;

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Figure>, CliError> {
    let folder = tempfile::tempdir()?;
    let isolates = plan.tenon.isolates();
    let mut threads = match &plan.in_process {
        Some(program) => Some(InProcess::start(program)?),
        None => None,
    };
    let plain = session(&folder.path().join("plain"), 0, isolates.clone()).await?;
    let hooked = session(&folder.path().join("hooked"), HOOKS, isolates).await?;
    let mut node = match &plan.node {
        Some(host) => {
            let tool = host.start("tool", TOOL).await?;
            let mut hooks = Vec::new();
            for _ in 0..HOOKS {
                hooks.push(host.start("hook", HOOK).await?);
            }
            Some((tool, hooks))
        }
        None => None,
    };
    let mut floor = PingPong::start(ping_pong::of_a_call()?)?;
    let [mut thread_calls, mut calls, mut hooked_calls] = [(); 3].map(|()| Samples::default());
    let [mut node_calls, mut node_hooked, mut floor_calls] = [(); 3].map(|()| Samples::default());
    let [mut large_calls, mut node_large] = [(); 2].map(|()| Samples::default());
    let (small, large) = (small_args(), large_args());
    if let Some((tool, hooks)) = &mut node {
        of_node(tool, &mut [], &small, WARM_UP).await?;
        of_node(tool, &mut [], &large, WARM_UP / 3).await?;
        of_node(tool, hooks, &small, WARM_UP / 3).await?;
    }
    floor.play(WARM_UP)?;
    if let Some(threads) = &mut threads {
        threads.calls(WARM_UP).await?;
    }
    for session in [&plain, &hooked] {
        of_session(session, WARM_UP).await?;
    }
    calls_with(&plain, &large, WARM_UP / 3).await?;
    for _ in 0..plan.repetitions {
        plan.step("call and hooks");
        if let Some((tool, hooks)) = &mut node {
            node_calls.add(of_node(tool, &mut [], &small, CALLS).await?);
            node_large.add(of_node(tool, &mut [], &large, LARGE_CALLS).await?);
            node_hooked.add(of_node(tool, hooks, &small, HOOKED_CALLS).await?);
        }
        calls.add(of_session(&plain, CALLS).await?);
        large_calls.add(calls_with(&plain, &large, LARGE_CALLS).await?);
        hooked_calls.add(of_session(&hooked, HOOKED_CALLS).await?);
        if let Some(threads) = &mut threads {
            thread_calls.add(threads.calls(CALLS).await?);
        }
        floor_calls.add(floor.play(CALLS)?);
    }
    for session in [plain, hooked] {
        session.end(EndReason::Complete).await;
    }
    let mut figures = Vec::new();
    if node.is_some() {
        figures.push(node_calls.figure(CALL, Side::Node, "node process + SDK"));
    }
    figures.push(calls.figure(CALL, Side::Tenon, THROUGH));
    if threads.is_some() {
        figures.push(thread_calls.figure(CALL, Side::Tenon, "Tenon, a thread in process"));
    }
    figures.push(floor_calls.figure(CALL, Side::Floor, PING_PONG));
    if node.is_some() {
        figures.push(node_large.figure(LARGE, Side::Node, "node process + SDK"));
    }
    figures.push(large_calls.figure(LARGE, Side::Tenon, THROUGH));
    if node.is_some() {
        figures.push(node_hooked.figure(HOOKED, Side::Node, "node processes + SDK"));
    }
    figures.push(hooked_calls.figure(HOOKED, Side::Tenon, THROUGH));
    Ok(figures)
}

/// A session with the tool, and so many extensions with hooks.
pub async fn session(folder: &Path, hooks: usize, isolates: Isolates) -> Result<Session, CliError> {
    let sources = (0..hooks).map(|number| (format!("hooks-{number}"), HOOK.to_owned()));
    let tool = ("tool".to_owned(), TOOL.to_owned());
    measured::session_in(folder, sources.chain([tool]), isolates).await
}

fn small_args() -> Value {
    json!({ "text": "hello" })
}

fn large_args() -> Value {
    let row = |number| json!({ "file": format!("src/part_{number:03}.rs"), "line": number, "text": "pub fn example() {" });
    let rows: Vec<Value> = (0..LARGE_ROWS).map(row).collect();
    json!({ "text": "hello", "rows": rows })
}

/// Calls as an agent's come: in a task of the event loop. How long each took, in microseconds.
pub async fn of_session(session: &Session, count: usize) -> Result<Vec<f64>, CliError> {
    calls_with(session, &small_args(), count).await
}

async fn calls_with(session: &Session, args: &Value, count: usize) -> Result<Vec<f64>, CliError> {
    let (session, args) = (session.clone(), args.clone());
    let calling = tokio::spawn(async move { call_again_and_again(&session, &args, count).await });
    calling.await.map_err(|error| CliError::new(error.to_string()))?
}

async fn call_again_and_again(
    session: &Session,
    args: &Value,
    count: usize,
) -> Result<Vec<f64>, CliError> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let call = ToolCall::new("echo", args.clone());
        let started = Instant::now();
        let outcome = session.call_tool(call).await;
        times.push(microseconds(started));
        if !outcome.is_ok_and(|outcome| outcome.result.text_result_for_llm == "hello") {
            return Err(CliError::new("a call brought something else than it should"));
        }
    }
    Ok(times)
}

/// Calls as a host with node processes makes them: the hooks before, one after the other, the tool, and the
/// hooks after it.
async fn of_node(
    tool: &mut NodeExtension,
    hooks: &mut [NodeExtension],
    args: &Value,
    count: usize,
) -> Result<Vec<f64>, CliError> {
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let owned = args.clone();
        let started = Instant::now();
        for hook in hooks.iter_mut() {
            hook.hook(
                "preToolUse",
                json!({ "toolName": "echo", "toolArgs": args, "timestamp": 0 }),
            )
            .await?;
        }
        let result = tool.call("echo", owned).await?;
        for hook in hooks.iter_mut() {
            let result = json!({ "textResultForLlm": result, "resultType": "success" });
            let input = json!({
                "toolName": "echo", "toolArgs": args, "toolResult": result, "timestamp": 0,
            });
            hook.hook("postToolUse", input).await?;
        }
        times.push(microseconds(started));
        if result != "hello" {
            return Err(CliError::new(format!("node answered {result}")));
        }
    }
    Ok(times)
}

fn microseconds(started: Instant) -> f64 {
    started.elapsed().as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_long_arguments_are_as_long_as_the_figure_says() {
        let kilobytes = large_args().to_string().len() / 1024;
        assert!((60..=68).contains(&kilobytes), "{kilobytes} KB");
    }
}
