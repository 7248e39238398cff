//! What a tool call comes to, for the agent and for the record.

use std::sync::Arc;

use serde_json::json;

use super::Session;
use super::files::KeepError;
use super::tool_messages::CompletedError;
use super::tool_messages::CompletedResult;
use super::tool_messages::ExecutionComplete;
use crate::events::EventData;
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

    /// The data of `tool.execution_complete`. The result, which may be long, is written down and not copied.
    pub(super) fn completed(&self, id: &str, tool: &str) -> EventData {
        let result = &self.result;
        let success = result.result_type == ResultType::Success;
        let message = result.error.as_ref().unwrap_or(&result.text_result_for_llm);
        EventData::written(&ExecutionComplete {
            tool_call_id: id,
            tool_name: tool,
            success,
            result: success.then(|| CompletedResult {
                content: &result.text_result_for_llm,
                binary_results_for_llm: result.rest.get("binaryResultsForLlm"),
            }),
            error: (!success).then_some(CompletedError { message, code: result.result_type }),
            tool_telemetry: result.rest.get("toolTelemetry"),
            suppress_output: self.suppress_output,
        })
    }
}

impl Session {
    /// Puts a text that is too long for an agent into a file, and a preview in its place. Where the session keeps as many
    /// results as it may, the text is cut.
    pub(super) async fn spill(&self, call: &str, result: &mut ToolResult) {
        let Some(limit) = self.0.options.large_result_bytes else { return };
        let length = result.text_result_for_llm.len();
        if length <= limit {
            return;
        }
        let text = Arc::new(std::mem::take(&mut result.text_result_for_llm));
        let (call, whole) = (call.to_owned(), text.clone());
        let kept = self.on_disk(move |session| session.keep_result(&call, &whole)).await;
        result.text_result_for_llm = Arc::unwrap_or_clone(text);
        let path = match kept {
            Some(Ok(path)) => path,
            // The runtime ends, and nobody reads the result.
            None => return,
            Some(Err(KeepError::NoRoom(why))) => {
                let text = &mut result.text_result_for_llm;
                text.truncate(text.floor_char_boundary(limit));
                let length = length.div_ceil(1024);
                text.push_str(&format!(
                    "\n[The result is {length} KB long. This is its beginning, and the rest is lost: {why}.]"
                ));
                return;
            }
            Some(Err(error @ KeepError::Unwritten(_))) => {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(result: ToolResult) -> ToolOutcome {
        ToolOutcome { result, ends_turn: false, ..ToolOutcome::aborted() }
    }

    #[test]
    fn a_success_is_said_with_its_result_and_a_failure_with_its_reason() {
        let mut result = ToolResult::success("done");
        result.rest.insert("binaryResultsForLlm".to_owned(), json!([{ "data": "aGk=" }]));
        result.rest.insert("toolTelemetry".to_owned(), json!({ "rows": 2 }));
        let images = json!([{ "data": "aGk=" }]);
        let expected = json!({
            "toolCallId": "c",
            "toolName": "t",
            "success": true,
            "result": { "content": "done", "binaryResultsForLlm": images },
            "toolTelemetry": { "rows": 2 },
        });
        assert_eq!(outcome(result).completed("c", "t"), expected);
        let denied = ToolOutcome { suppress_output: true, ..outcome(ToolResult::denied("no")) };
        let expected = json!({
            "toolCallId": "c",
            "toolName": "t",
            "success": false,
            "error": { "message": "no", "code": "denied" },
            "suppressOutput": true,
        });
        assert_eq!(denied.completed("c", "t"), expected);
    }
}
