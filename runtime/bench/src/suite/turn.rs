//! A long turn: whether its end is as quick as its beginning.
//!
//! The agent of a real session says something and calls a tool, again and again, in one turn. The same is
//! done with a node process in between, so that noise hits both.

use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use serde_json::json;
use tenon_console::error::CliError;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::front::AgentError;
use tenon_host::front::AgentPrompt;
use tenon_host::front::Answer;
use tenon_host::front::ErrorContext;
use tenon_host::front::StopReason;
use tenon_host::session::Agent;
use tenon_host::session::EndReason;
use tenon_host::session::Message;
use tenon_host::session::ToolCall;
use tenon_host::session::Turn;
use tokio::sync::Mutex;

use super::Plan;
use super::report::Figure;
use super::report::Samples;
use super::report::Side;
use super::report::Topic;
use crate::node_host::NodeExtension;

/// Steps of a part; there are ten parts.
const STEPS: usize = 200;
pub const PARTS: usize = 10;

/// What the agent says before every call.
const DELTAS: usize = 10;
const WORDS: &str = "a few words of text ";

const STEP: Topic = ("turn", "step of a long turn: 10 deltas, a hook, a call, a hook", "us");

/// A tool, hooks, and an ear for what the agent says.
const EXTENSION: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
let seen = 0;
const session = await joinSession({
  streaming: true,
  tools: [{ name: "echo", description: "x", handler: ({ text }) => text }],
  hooks: { onPreToolUse: () => { seen += 1; }, onPostToolUse: () => { seen += 1; } },
});
session.on("assistant.message_delta", ({ data }) => { seen += data.deltaContent.length; });
"#;

/// The agent: works on one prompt, and measures.
struct LongTurn {
    state: Mutex<State>,
}

struct State {
    node: Option<NodeExtension>,
    ours: Samples,
    theirs: Samples,
}

#[async_trait]
impl Agent for LongTurn {
    async fn prompt(&self, turn: Arc<Turn>, _: Arc<AgentPrompt>) -> Result<Answer, AgentError> {
        let mut state = self.state.lock().await;
        for _ in 0..PARTS {
            state.part(&turn).await.map_err(|error| AgentError {
                message: error.message().to_owned(),
                context: ErrorContext::System,
                recoverable: false,
                native: None,
            })?;
        }
        Ok(StopReason::end_turn().into())
    }

    fn cancel(&self) {}
}

impl State {
    async fn part(&mut self, turn: &Turn) -> Result<(), CliError> {
        let mut times = Vec::with_capacity(STEPS);
        for _ in 0..STEPS {
            let started = Instant::now();
            for _ in 0..DELTAS {
                turn.delta(WORDS);
            }
            let outcome = turn.call_tool(ToolCall::new("echo", json!({ "text": "hello" }))).await;
            times.push(started.elapsed().as_secs_f64() * 1e6);
            if !outcome.is_ok_and(|outcome| outcome.result.text_result_for_llm == "hello") {
                return Err(CliError::new("a call of a long turn failed"));
            }
        }
        self.ours.add(times);
        let Some(node) = &mut self.node else { return Ok(()) };
        let mut times = Vec::with_capacity(STEPS);
        for _ in 0..STEPS {
            let started = Instant::now();
            for _ in 0..DELTAS {
                let data = json!({ "messageId": "m", "deltaContent": WORDS });
                node.event("assistant.message_delta", data).await?;
            }
            let args = json!({ "text": "hello" });
            let input = json!({ "toolName": "echo", "toolArgs": args, "timestamp": 0 });
            node.hook("preToolUse", input).await?;
            let result = node.call("echo", args.clone()).await?;
            let result = json!({ "textResultForLlm": result, "resultType": "success" });
            let input = json!({
                "toolName": "echo", "toolArgs": args, "toolResult": result, "timestamp": 0,
            });
            node.hook("postToolUse", input).await?;
            times.push(started.elapsed().as_secs_f64() * 1e6);
        }
        self.theirs.add(times);
        Ok(())
    }
}

pub async fn measure(plan: &mut Plan<'_>) -> Result<Vec<Figure>, CliError> {
    plan.step("long turn");
    let folder = tempfile::tempdir()?;
    let extension = folder.path().join("extensions").join("turn");
    std::fs::create_dir_all(&extension)?;
    std::fs::write(extension.join("extension.mjs"), EXTENSION)?;
    let node = match &plan.node {
        Some(host) => Some(host.start("turn", EXTENSION).await?),
        None => None,
    };
    let has_node = node.is_some();
    let state = State { node, ours: Samples::default(), theirs: Samples::default() };
    let agent = Arc::new(LongTurn { state: Mutex::new(state) });
    let options = SessionOptions {
        extension_folders: vec![folder.path().join("extensions")],
        record: true,
        isolates: plan.tenon.isolates(),
        agent: Some(agent.clone()),
        ..SessionOptions::new(folder.path().to_owned(), folder.path().join("home"))
    };
    let session = Session::new(options)?;
    session.load().await;
    let end = session.send_and_wait(Message::new("go")).await;
    session.end(EndReason::Complete).await;
    end.map_err(|error| CliError::new(error.to_string()))?;
    let state = agent.state.lock().await;
    if state.ours.len() != PARTS {
        return Err(CliError::new("the long turn ended before its end"));
    }
    let mut figures = Vec::new();
    if has_node {
        figures.push(state.theirs.figure(STEP, Side::Node, "node process + SDK"));
    }
    figures.push(state.ours.figure(STEP, Side::Tenon, "Tenon"));
    let parts = [("Tenon, the first tenth", 0), ("Tenon, the last tenth", PARTS - 1)];
    figures.extend(parts.map(|(case, part)| state.ours.only(part).figure(STEP, Side::Tenon, case)));
    Ok(figures)
}
