//! The part of the demo in which the agent writes extensions for itself, well and badly.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tenon_host::Status;
use tenon_host::events::Filter;
use tenon_host::session::ToolCall;
use tenon_host::session::Turn;
use tenon_host::tool::ResultType;

use super::Timeline;
use super::place;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::RED;

/// What the agent makes of the scaffold.
const DICE: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "roll_dice",
    description: "Rolls dice",
    parameters: { type: "object", properties: { count: { type: "integer" } } },
    handler: ({ count = 1 }) => `rolled ${count}: ` + Array.from({ length: count }, () => 4).join(" "),
  }],
});
"#;

/// The same, saved in the middle of a word.
const HALF: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";

await joinSession({
  tools: [{
    name: "roll_dice",
    descrip
"#;

/// An extension that does not come back.
const STUCK: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";

function count(n) {
  while (true) n += 1;
}

await joinSession({
  tools: [{ name: "count_forever", description: "Counts", handler: () => count(0) }],
});
"#;

/// How long the demo waits for something that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// The lines of a text that are shown.
const SHOWN_LINES: usize = 6;

/// An agent at work on its own extensions.
pub struct Author<'a> {
    pub turn: &'a Turn,
    pub timeline: Timeline,
    /// What is not shown of a path.
    pub root: PathBuf,
}

impl Author<'_> {
    /// Goes through it all; true if everything went as it should.
    pub async fn work(&self) -> bool {
        let mut fine = true;
        self.timeline.title("The agent writes itself a tool, and uses it in the same turn");
        let scaffold = json!({ "operation": "scaffold", "name": "dice" });
        fine &= self.call("extensions_manage", scaffold).await.is_ok();
        self.save("dice", DICE);
        fine &= self.call("extensions_reload", json!({})).await.is_ok();
        fine &= self.rolls().await;

        self.timeline.title("A broken save keeps the tool that works");
        fine &= self.save_badly().await;
        fine &= self.rolls().await;

        self.timeline.title("An endless loop is stopped and named, and nobody else notices");
        self.save("stuck", STUCK);
        fine &= self.call("extensions_reload", json!({})).await.is_ok();
        let stopped = self.call("count_forever", json!({})).await;
        fine &= stopped
            .is_err_and(|why| why.contains("cpu-ms") && why.contains("stuck/extension.mjs:"));
        fine &= self.rolls().await;
        fine & self.is_back("stuck").await
    }

    async fn rolls(&self) -> bool {
        let rolled = self.call("roll_dice", json!({ "count": 2 })).await;
        rolled.is_ok_and(|text| text.starts_with("rolled 2"))
    }

    /// Saves half a file and waits until somebody has complained.
    async fn save_badly(&self) -> bool {
        let mut wanted = Filter::default();
        wanted.add("session.warning");
        let warnings = self.turn.session().subscribe("the demo", wanted);
        self.save("dice", HALF);
        let complaint = async {
            loop {
                let event = warnings.next().await;
                let data = &event.event.data;
                if data["warningType"] == "extension_reload_failed" {
                    break data["message"].as_str().unwrap_or_default().to_owned();
                }
            }
        };
        match tokio::time::timeout(PATIENCE, complaint).await {
            Ok(message) => {
                self.timeline.say("noticed by itself:");
                self.timeline.quote(&self.shorten(&message), RED);
                true
            }
            Err(_) => false,
        }
    }

    /// Waits until an extension runs again.
    async fn is_back(&self, name: &str) -> bool {
        let runs = async {
            loop {
                let found = self.turn.session().find(name);
                if found.iter().any(|info| info.status == Status::Running && info.failures > 0) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let back = tokio::time::timeout(PATIENCE, runs).await.is_ok();
        if back {
            self.timeline.say(&format!("{name} was started again"));
        }
        back
    }

    /// Writes an extension, as an agent does with its own editing tool.
    fn save(&self, name: &str, source: &str) {
        let file = format!(".github/extensions/{name}/extension.mjs");
        let path = self.turn.session().cwd().join(&file);
        let written = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&path, source));
        match written {
            Ok(()) => self.timeline.say(&format!("{DIM}saves{DIM:#} {file}")),
            Err(error) => self.timeline.say(&format!("{RED}{file}: {error}{RED:#}")),
        }
    }

    /// Calls a tool and shows call and answer. The text it gave, or why it failed.
    async fn call(&self, tool: &str, args: serde_json::Value) -> Result<String, String> {
        let started = std::time::Instant::now();
        let shown = if args == json!({}) { String::new() } else { args.to_string() };
        let outcome = self.turn.call_tool(ToolCall::new(tool, args)).await;
        let result = match outcome {
            Ok(outcome) => outcome.result,
            Err(error) => {
                self.timeline.say(&format!("{CYAN}{tool}{CYAN:#} {RED}{error}{RED:#}"));
                return Err(error.to_string());
            }
        };
        let took = started.elapsed().as_secs_f64() * 1000.0;
        self.timeline.say(&format!("{CYAN}{tool}{CYAN:#} {shown} {DIM}{took:.1} ms{DIM:#}"));
        let success = result.result_type == ResultType::Success;
        let text = result.error.as_ref().unwrap_or(&result.text_result_for_llm);
        let style = if success { anstyle::Style::new() } else { RED };
        let lines: Vec<String> = self.shorten(text).lines().map(str::to_owned).collect();
        self.timeline.quote(&lines[..lines.len().min(SHOWN_LINES)].join("\n"), style);
        if lines.len() > SHOWN_LINES {
            self.timeline.quote("...", DIM);
        }
        if let Some(at) = &result.location {
            place(at);
        }
        if success { Ok(text.clone()) } else { Err(text.clone()) }
    }

    fn shorten(&self, text: &str) -> String {
        text.replace(&*self.root.to_string_lossy(), "")
    }
}
