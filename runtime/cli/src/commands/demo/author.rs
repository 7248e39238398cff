//! The part of the demo in which the agent writes extensions for itself, well and badly.

use std::time::Duration;

use serde_json::Value;
use tenon_host::Status;
use tenon_host::events::Filter;

use super::agent::DemoAgent;
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
const PATIENCE: Duration = Duration::from_secs(120);

/// An agent at work on its own extensions.
pub struct Author<'a>(pub &'a DemoAgent);

impl Author<'_> {
    /// Goes through it all; true if everything went as it should.
    pub async fn work(&self) -> bool {
        let timeline = self.0.timeline;
        timeline.title("The agent writes itself a tool, and uses it in the same turn");
        let prompt = format!(
            "@call extensions_manage {{\"operation\":\"scaffold\",\"name\":\"dice\"}}\n{}\n\
             @call extensions_reload {{}}\n{ROLL}",
            saves("dice", DICE)
        );
        let (results, _) = self.0.ask(&prompt).await;
        let mut fine = results.len() == 4 && rolled(&results);

        timeline.title("A broken save keeps the tool that works");
        fine &= self.save_badly().await;
        fine &= rolled(&self.0.ask(ROLL).await.0);

        timeline.title("An endless loop is stopped and named, and nobody else notices");
        let prompt = format!(
            "{}\n@call extensions_reload {{}}\n@call count_forever {{}}",
            saves("stuck", STUCK)
        );
        let (results, _) = self.0.ask(&prompt).await;
        fine &= matches!(
            results.last(),
            Some(Err(why)) if why.contains("cpu-ms") && why.contains("stuck/extension.mjs:")
        );
        fine &= rolled(&self.0.ask(ROLL).await.0);
        fine & self.is_back("stuck").await
    }

    /// Has half a file saved and waits until somebody has complained.
    async fn save_badly(&self) -> bool {
        let mut wanted = Filter::default();
        wanted.add("session.warning");
        let warnings = self.0.session().subscribe("the demo", wanted);
        self.0.ask(&saves("dice", HALF)).await;
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
                self.0.timeline.say("noticed by itself:");
                self.0.timeline.quote(&self.0.shorten(&message), RED);
                true
            }
            Err(_) => false,
        }
    }

    /// Waits until an extension runs again.
    async fn is_back(&self, name: &str) -> bool {
        let runs = async {
            loop {
                let found = self.0.session().find(name);
                if found.iter().any(|info| info.status == Status::Running && info.failures > 0) {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let back = tokio::time::timeout(PATIENCE, runs).await.is_ok();
        if back {
            self.0.timeline.say(&format!("{name} was started again"));
        }
        back
    }
}

/// Has the agent use its new tool.
const ROLL: &str = "@call roll_dice {\"count\":2}";

/// Has the agent save an extension with its own editing tool.
fn saves(name: &str, source: &str) -> String {
    format!("@write .github/extensions/{name}/extension.mjs {}", Value::from(source))
}

fn rolled(results: &[Result<String, String>]) -> bool {
    matches!(results.last(), Some(Ok(text)) if text.starts_with("rolled 2"))
}
