//! What a tool call comes to, for the agent and for the record.

use serde_json::Value;
use serde_json::json;

use super::Session;
use super::files::KeepError;
use crate::front::Context;
use crate::tool::ResultType;
use crate::tool::ToolResult;

/// How much of a long result the agent sees; the rest is in a file.
const PREVIEW_CHARS: usize = 500;

/// A tool call that has ended, with what extensions said about it.
#[derive(Debug, Clone)]
pub struct ToolOutcome {
    /// The result, after all rewrites.
    pub result: ToolResult,
    /// What extensions said before the call.
    pub before: Vec<Context>,
    /// What extensions said after the call.
    pub after: Vec<Context>,
    /// Whether the agent's turn is to end with this call.
    pub ends_turn: bool,
    /// Whether the call is not to be shown.
    pub suppress_output: bool,
}

impl ToolOutcome {
    /// A call whose turn was aborted.
    pub(super) fn aborted() -> Self {
        Self {
            result: ToolResult::failure("the turn was aborted"),
            before: Vec::new(),
            after: Vec::new(),
            ends_turn: true,
            suppress_output: false,
        }
    }

    /// What the agent's model is to read: the result, and what extensions said.
    pub fn text_for_model(self) -> String {
        let mut text = self.result.text_result_for_llm;
        let mut add = |heading: &str, contexts: &[Context]| {
            if !contexts.is_empty() {
                text.push_str(&format!("\n\n{heading}\n{}", Context::render(contexts)));
            }
        };
        add("What extensions said before the call:", &self.before);
        add("What extensions say about this result:", &self.after);
        text
    }

    /// The data of `tool.execution_complete`.
    pub(super) fn completed(&self, id: &str, tool: &str) -> Value {
        let result = &self.result;
        let success = result.result_type == ResultType::Success;
        let mut data = json!({ "toolCallId": id, "toolName": tool, "success": success });
        if success {
            data["result"] = json!({ "content": result.text_result_for_llm });
            if let Some(binaries) = result.rest.get("binaryResultsForLlm") {
                data["result"]["binaryResultsForLlm"] = binaries.clone();
            }
        } else {
            let message = result.error.as_ref().unwrap_or(&result.text_result_for_llm);
            data["error"] = json!({ "message": message, "code": result.result_type });
        }
        if let Some(telemetry) = result.rest.get("toolTelemetry") {
            data["toolTelemetry"] = telemetry.clone();
        }
        if self.suppress_output {
            data["suppressOutput"] = true.into();
        }
        data
    }
}

impl Session {
    /// Puts a text that is too long for an agent into a file, and a preview in its place. Where the session keeps as many
    /// results as it may, the text is cut.
    pub(super) fn spill(&self, call: &str, result: &mut ToolResult) {
        let Some(limit) = self.0.options.large_result_bytes else { return };
        let length = result.text_result_for_llm.len();
        if length <= limit {
            return;
        }
        let path = match self.keep_result(call, &result.text_result_for_llm) {
            Ok(path) => path,
            Err(KeepError::NoRoom(why)) => {
                let text = &mut result.text_result_for_llm;
                text.truncate(text.floor_char_boundary(limit));
                let length = length.div_ceil(1024);
                text.push_str(&format!(
                    "\n[The result is {length} KB long. This is its beginning, and the rest is lost: {why}.]"
                ));
                return;
            }
            Err(error @ KeepError::Unwritten(_)) => {
                // Better long than lost.
                let message = format!("a long result could not be put into a file: {error}");
                let data = json!({ "warningType": "result_not_kept", "message": message });
                self.emit("session.warning", data);
                return;
            }
        };
        let preview: String = result.text_result_for_llm.chars().take(PREVIEW_CHARS).collect();
        result.rest.insert("resultFile".into(), path.to_string_lossy().into());
        result.text_result_for_llm = format!(
            "The result is {} KB long. All of it is in {}\nIt begins:\n{preview}",
            length.div_ceil(1024),
            path.display()
        );
    }
}
