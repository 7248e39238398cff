//! The demo's agent: it says what it was told, tries something it should not, and writes extensions.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use serde_json::json;
use tenon_host::Permission;
use tenon_host::front::Agent;
use tenon_host::front::AgentError;
use tenon_host::front::AgentPrompt;
use tenon_host::front::StopReason;
use tenon_host::session::AgentTool;
use tenon_host::session::Turn;
use tenon_host::tool::ToolResult;

use super::Timeline;
use super::author::Author;
use crate::output::CYAN;
use crate::output::GREEN;
use crate::output::RED;

/// What the agent wants to run, by itself.
const COMMANDS: [&str; 2] = ["cargo test", "cd / && rm -rf ."];

pub struct DemoAgent {
    pub timeline: Timeline,
    /// The folder that everything is in.
    pub root: PathBuf,
    /// Whether it got what extensions had to say, and was kept from what it should not do.
    pub went_well: AtomicBool,
}

#[async_trait]
impl Agent for DemoAgent {
    async fn prompt(&self, turn: Arc<Turn>, prompt: AgentPrompt) -> Result<StopReason, AgentError> {
        let timeline = self.timeline;
        timeline.say("the agent gets:");
        timeline.quote(&prompt.text, anstyle::Style::new());
        let mut denials = 0;
        timeline.title("guard-rails, an extension, looks at what the agent wants to run");
        for (number, command) in COMMANDS.iter().enumerate() {
            let mut tool = AgentTool {
                id: format!("call-{number}"),
                name: "bash".to_owned(),
                args: json!({ "command": command }),
                ..AgentTool::default()
            };
            let verdict = turn.session().before_agent_tool(&mut tool).await;
            let denied = verdict.decided.filter(|decided| decided.permission == Permission::Deny);
            let (word, result) = match &denied {
                Some(denied) => {
                    let reason = denied.reason.clone().unwrap_or_default();
                    (format!("{RED}denied{RED:#}"), ToolResult::denied(reason))
                }
                None => (format!("{GREEN}may run{GREEN:#}"), ToolResult::success("done")),
            };
            timeline.say(&format!("{CYAN}bash{CYAN:#} {command}  {word}"));
            if denied.is_some() {
                denials += 1;
                timeline.quote(&result.text_result_for_llm, RED);
            }
            turn.session().after_agent_tool(&tool, result).await;
        }
        let told = ["ticket 42", "make test", "commit message"];
        let author = Author { turn: &turn, timeline, root: self.root.clone() };
        let wrote_well = author.work().await;
        let was_told = told.iter().all(|text| prompt.text.contains(text));
        let went_well = denials == 1 && was_told && wrote_well;
        self.went_well.store(went_well, Ordering::Relaxed);
        Ok(StopReason::end_turn())
    }

    fn cancel(&self) {}
}
