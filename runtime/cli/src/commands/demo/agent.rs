//! The demo's agent at work: a process of its own, reached by ACP, with the tools of extensions by MCP.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use serde_json::Value;
use tenon_acp::conversation::Conversation;
use tenon_host::Session;
use tenon_host::events::Event;
use tenon_host::session::Message;
use tenon_host::session::TurnEnd;

use super::Timeline;
use crate::output::CYAN;
use crate::output::DIM;
use crate::output::GREEN;
use crate::output::RED;

/// The lines of a text that are shown.
const SHOWN_LINES: usize = 6;

/// The agent, and what is shown of its turns.
pub struct DemoAgent {
    pub timeline: Timeline,
    /// What is not shown of a path.
    root: PathBuf,
    conversation: Conversation,
    told: Arc<Mutex<Told>>,
}

/// What has happened in a turn.
#[derive(Default)]
struct Told {
    /// A turn is on; what the demo does by itself is shown by itself.
    listening: bool,
    begun: Option<Instant>,
    results: Vec<Result<String, String>>,
    said: Vec<String>,
}

impl DemoAgent {
    pub fn new(timeline: Timeline, root: PathBuf, conversation: Conversation) -> Self {
        let told: Arc<Mutex<Told>> = Arc::default();
        let (tapped, shown_root) = (told.clone(), root.clone());
        conversation.session().tap(move |event| {
            let mut told = tapped.lock();
            if told.listening {
                show(timeline, &shown_root, &mut told, event);
            }
        });
        Self { timeline, root, conversation, told }
    }

    pub fn session(&self) -> &Session {
        self.conversation.session()
    }

    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Gives the agent a prompt; what its tools gave, in their order, and what it said.
    pub async fn ask(&self, prompt: &str) -> (Vec<Result<String, String>>, Vec<String>) {
        *self.told.lock() = Told { listening: true, ..Told::default() };
        let end = self.conversation.prompt(Message::new(prompt)).await;
        match end {
            Ok(TurnEnd::Ended(_)) => {}
            Ok(TurnEnd::Failed(error)) => self.timeline.say(&format!("{RED}{error}{RED:#}")),
            Ok(other) => self.timeline.say(&format!("{RED}{other:?}{RED:#}")),
            Err(error) => self.timeline.say(&format!("{RED}{error}{RED:#}")),
        }
        let mut told = self.told.lock();
        told.listening = false;
        (std::mem::take(&mut told.results), std::mem::take(&mut told.said))
    }

    /// A text without the folder that everything is in.
    pub fn shorten(&self, text: &str) -> String {
        text.replace(&*self.root.to_string_lossy(), "")
    }
}

/// Shows what there is to see of an event.
fn show(timeline: Timeline, root: &std::path::Path, told: &mut Told, event: &Event) {
    let data = &event.data;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let shorten = |text: &str| text.replace(&*root.to_string_lossy(), "");
    match &*event.kind {
        "assistant.message" => {
            let said = text(&data["content"]);
            timeline.say("the agent says:");
            timeline.quote(&shorten(&said), anstyle::Style::new());
            told.said.push(said);
        }
        "tool.execution_start" => {
            told.begun = Some(Instant::now());
            let mut args = data["arguments"].clone();
            if let Some(long) = args.get_mut("file_text") {
                *long = "...".into();
            }
            let args = if args == serde_json::json!({}) { String::new() } else { args.to_string() };
            let tool = text(&data["toolName"]);
            timeline.say(&format!("{CYAN}{tool}{CYAN:#} {}", shorten(&args)));
        }
        "tool.execution_complete" => {
            let took = told.begun.map_or(0.0, |begun| begun.elapsed().as_secs_f64() * 1000.0);
            let (word, style, result) = if data["success"] == true {
                let result = text(&data["result"]["content"]);
                (format!("{GREEN}ok{GREEN:#}"), anstyle::Style::new(), Ok(result))
            } else {
                let result = text(&data["error"]["message"]);
                let word = if data["error"]["code"] == "denied" { "denied" } else { "failed" };
                (format!("{RED}{word}{RED:#}"), RED, Err(result))
            };
            timeline.say(&format!("  {word} {DIM}{took:.1} ms{DIM:#}"));
            let (Ok(said) | Err(said)) = &result;
            let lines: Vec<String> = shorten(said).lines().map(str::to_owned).collect();
            timeline.quote(&lines[..lines.len().min(SHOWN_LINES)].join("\n"), style);
            if lines.len() > SHOWN_LINES {
                timeline.quote("...", DIM);
            }
            told.results.push(result);
        }
        _ => {}
    }
}
