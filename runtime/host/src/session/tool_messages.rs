//! What is said of a tool call: to those who listen to events, and to the extension that runs it. The arguments, which
//! may be long, are written down once and stand in each of these as that text.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use tenon_protocol::json::Json;

use crate::tool::ResultType;

/// The data of `tool.execution_start`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecutionStart<'a> {
    pub tool_call_id: &'a str,
    pub tool_name: &'a str,
    pub arguments: &'a Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_server_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_arguments: Option<&'a Value>,
}

/// The data of `external_tool.requested`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolRequested<'a> {
    pub request_id: &'a str,
    pub session_id: &'a str,
    pub tool_call_id: &'a str,
    pub tool_name: &'a str,
    pub arguments: &'a Json,
    pub working_directory: Cow<'a, str>,
}

/// The data of `tool.execution_complete`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecutionComplete<'a> {
    pub tool_call_id: &'a str,
    pub tool_name: &'a str,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<CompletedResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CompletedError<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_telemetry: Option<&'a Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub suppress_output: bool,
}

/// What a call has given back.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CompletedResult<'a> {
    pub content: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binary_results_for_llm: Option<&'a Value>,
}

/// Why a call has given nothing back.
#[derive(Serialize)]
pub(super) struct CompletedError<'a> {
    pub message: &'a str,
    pub code: ResultType,
}

/// What the extension that has the tool is told.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolPayload<'a> {
    pub name: &'a str,
    pub args: &'a Json,
    pub tool_call_id: &'a str,
    pub request_id: &'a str,
    pub session_id: &'a str,
    /// The sub-agent that calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<&'a str>,
    /// For the tool that searches other tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_tools: Option<Value>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::hooks::tool_use::Caller;
    use crate::hooks::tool_use::Pre;
    use crate::hooks::written::Written;

    #[test]
    fn arguments_are_written_down_once_for_everybody() {
        let args = Json::from(json!({ "rows": [{ "file": "a" }, { "file": "b" }] }));
        let start = ExecutionStart {
            tool_call_id: "1",
            tool_name: "echo",
            arguments: &args,
            mcp_server_name: None,
            mcp_tool_name: None,
            native_tool_name: None,
            native_arguments: None,
        };
        let requested = ToolRequested {
            request_id: "r",
            session_id: "s",
            tool_call_id: "1",
            tool_name: "echo",
            arguments: &args,
            working_directory: "/".into(),
        };
        let payload = ToolPayload {
            name: "echo",
            args: &args,
            tool_call_id: "1",
            request_id: "r",
            session_id: "s",
            agent_id: None,
            available_tools: None,
        };
        let pre = Pre::new(Caller::default(), args.clone());
        let all = [
            Written::of(&start),
            Written::of(&requested),
            Written::of(&payload),
            Written::of_hook(&pre),
        ];
        for written in all {
            // The object itself; those in the arguments were walked when their text was made.
            assert_eq!(written.objects, 1, "{}", written.text);
            assert_eq!(written.spliced, [args.text().get()], "{}", written.text);
        }
    }

    #[test]
    fn what_is_not_so_is_not_said() {
        let args = Json::from(json!({}));
        let payload = ToolPayload {
            name: "echo",
            args: &args,
            tool_call_id: "1",
            request_id: "r",
            session_id: "s",
            agent_id: Some("a"),
            available_tools: None,
        };
        let expected = r#"{"name":"echo","args":{},"toolCallId":"1","requestId":"r","sessionId":"s","agentId":"a"}"#;
        assert_eq!(serde_json::to_string(&payload).unwrap(), expected);
    }
}
