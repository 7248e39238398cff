//! Tools: what an extension declares, and what a call gives back.

use std::ops::Deref;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;
use serde::Serializer;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::ScriptError;

/// A tool as an extension declares it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolDeclaration {
    /// Unique among all extensions.
    pub name: String,
    /// What the model is told.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
    /// Flags and metadata that the host passes on.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl ToolDeclaration {
    /// A tool of the session itself. The agent may use it without a question.
    pub(crate) fn of_session(
        name: &str,
        description: &str,
        required: &[&str],
        properties: Value,
    ) -> Self {
        Self {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: Some(
                json!({ "type": "object", "properties": properties, "required": required }),
            ),
            rest: Map::from_iter([("skipPermission".to_owned(), true.into())]),
        }
    }

    /// Whether a flag is set.
    pub fn flag(&self, name: &str) -> bool {
        self.rest.get(name) == Some(&Value::Bool(true))
    }
}

/// A declaration that all who list the tool share: a clone copies nothing of it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "ToolDeclaration")]
pub struct SharedTool(Arc<ToolDeclaration>);

impl From<ToolDeclaration> for SharedTool {
    fn from(tool: ToolDeclaration) -> Self {
        Self(Arc::new(tool))
    }
}

impl Deref for SharedTool {
    type Target = ToolDeclaration;

    fn deref(&self) -> &ToolDeclaration {
        &self.0
    }
}

impl Serialize for SharedTool {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

/// The schema of a text among the properties of a tool.
pub(crate) fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResultType {
    /// As wanted.
    Success,
    /// The tool says it failed, or threw.
    Failure,
    /// The user said no; the turn ends.
    Rejected,
    /// A rule said no.
    Denied,
    /// It took too long.
    Timeout,
}

/// What a tool call gives back.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// What the model sees.
    pub text_result_for_llm: String,
    /// How it ended.
    pub result_type: ResultType,
    /// What went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Where it went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub location: Option<Location>,
    /// Everything else the handler returned.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A place in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Location {
    /// The file.
    pub file: String,
    /// One-based.
    pub line: u32,
    /// One-based.
    pub column: u32,
}

impl ToolResult {
    /// A failure that happened on our side.
    pub fn failure(message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            text_result_for_llm: message.clone(),
            result_type: ResultType::Failure,
            error: Some(message),
            location: None,
            rest: Map::new(),
        }
    }

    /// A success with a text.
    pub fn success(text: impl Into<String>) -> Self {
        Self {
            text_result_for_llm: text.into(),
            result_type: ResultType::Success,
            error: None,
            location: None,
            rest: Map::new(),
        }
    }

    /// A rule, or the person, said no.
    pub fn denied(message: impl Into<String>) -> Self {
        Self { result_type: ResultType::Denied, ..Self::failure(message) }
    }

    /// Reads what somebody answered in the place of a handler: `{ result }`, as a text or a result object,
    /// or `{ error }`.
    pub fn from_pending(answer: Value) -> Self {
        if let Some(error) = answer["error"].as_str() {
            return Self::failure(error);
        }
        match &answer["result"] {
            Value::String(text) => Self::success(text),
            result @ Value::Object(_) => Self::from_reply(result.clone()),
            Value::Null => Self::success(""),
            other => Self::success(other.to_string()),
        }
    }

    /// Reads what the SDK sent. A stack becomes a place; the rest of it is of no use to a model.
    pub fn from_reply(reply: Value) -> Self {
        let mut result: Self = match serde_json::from_value(reply) {
            Ok(result) => result,
            Err(error) => return Self::failure(format!("the tool's result is not valid: {error}")),
        };
        if let Some(Value::String(stack)) = result.rest.remove("stack") {
            let error = ScriptError { stack: Some(stack), ..ScriptError::default() };
            let error = tenon_protocol::place::locate(error);
            if let (Some(file), Some(line), Some(column)) = (error.file, error.line, error.column) {
                result.location = Some(Location { file, line, column });
            }
        }
        result
    }
}
