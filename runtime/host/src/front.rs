//! What a session says to an agent and to a person, and what they answer.
//!
//! A terminal or an editor implements [`Front`], a bridge to a coding agent [`crate::session::Agent`]; tests and
//! embedding programs may implement either. A session without one of them says so whenever it is needed.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Map;
use serde_json::Value;
use tenon_protocol::permission::DecisionKind;
use tenon_protocol::permission::PermissionRequest;

/// A prompt as the agent gets it.
#[derive(Debug, Clone, Default)]
pub struct AgentPrompt {
    /// Identifies it in events.
    pub message_id: String,
    /// What extensions say before it, each under its own name.
    pub context: Vec<Context>,
    /// The text, after all rewrites and with what extensions added to it.
    pub text: String,
    /// Whether that is another text than the message had.
    pub rewritten: bool,
    /// Files, folders, selections and blobs, as the public contract describes them.
    pub attachments: Arc<[Value]>,
    /// The mode asked for, if one was.
    pub agent_mode: Option<String>,
    /// The message as the front was given it: see [`crate::session::Message::native`].
    pub native: Option<Arc<Value>>,
}

/// Something an extension tells the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Context {
    /// Who says it: `scope:name`.
    pub extension: String,
    /// What it says.
    pub text: String,
}

impl Context {
    /// Several contexts as one text for the agent; empty for none.
    pub fn render(contexts: &[Self]) -> String {
        let one = |context: &Self| {
            format!("<context from=\"{}\">\n{}\n</context>", context.extension, context.text)
        };
        contexts.iter().map(one).collect::<Vec<_>>().join("\n")
    }
}

/// Why an agent stopped: `end_turn`, `cancelled`, `max_tokens`, `refusal` ...
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopReason(pub String);

impl StopReason {
    /// The agent has said what it had to say.
    pub fn end_turn() -> Self {
        Self("end_turn".to_owned())
    }

    /// The prompt was cancelled.
    pub fn cancelled() -> Self {
        Self("cancelled".to_owned())
    }
}

/// What an agent answers to a prompt when it has stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Why it stopped.
    pub stop: StopReason,
    /// All of the answer, from an agent that says more than the reason: the result of an ACP `session/prompt`.
    pub native: Option<Value>,
}

impl From<StopReason> for Answer {
    fn from(stop: StopReason) -> Self {
        Self { stop, native: None }
    }
}

/// A prompt could not be worked on.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct AgentError {
    /// What went wrong.
    pub message: String,
    /// Where it went wrong.
    pub context: ErrorContext,
    /// Whether trying again may help.
    pub recoverable: bool,
    /// The agent's own error, if the agent gave one: a JSON-RPC error object.
    pub native: Option<Value>,
}

/// Where an error happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorContext {
    /// While the model was asked.
    ModelCall,
    /// While a tool ran.
    ToolExecution,
    /// Anywhere else in the agent or the host.
    System,
    /// While the person was asked.
    UserInput,
}

/// What a front can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FrontCapabilities {
    /// It can show forms.
    pub elicitation: bool,
    /// It can show pages.
    pub canvases: bool,
}

/// Where the person is. `None` as an answer means that nobody could be asked.
#[async_trait]
pub trait Front: Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> FrontCapabilities {
        FrontCapabilities::default()
    }

    /// Asks whether something may be done.
    async fn request_permission(&self, _request: &PermissionRequest) -> Option<Decision> {
        None
    }

    /// Shows a form.
    async fn elicit(&self, _request: &Elicitation) -> Option<ElicitationAnswer> {
        None
    }

    /// Asks a question.
    async fn ask_user(&self, _question: &Question) -> Option<UserAnswer> {
        None
    }

    /// Answers a request of another kind, by the name of the handler that extensions have for it.
    async fn ask_other(&self, _handler: &str, _request: &Value) -> Option<Value> {
        None
    }

    /// Shows a page; again with the same instance: brings it to the front.
    async fn show_canvas(&self, _canvas: &OpenCanvas) {}

    /// Takes a page away.
    async fn close_canvas(&self, _instance: &str) {}
}

/// The answer to a permission request: the public contract's `PermissionRequestResult`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// How it was decided.
    pub kind: DecisionKind,
    /// What the person said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

impl Decision {
    /// A decision without more.
    pub fn new(kind: DecisionKind) -> Self {
        Self { kind, feedback: None, rest: Map::new() }
    }

    /// It may be done, this time.
    pub fn approve() -> Self {
        Self::new(DecisionKind::ApproveOnce)
    }

    /// It may not be done.
    pub fn reject(feedback: impl Into<Option<String>>) -> Self {
        Self { feedback: feedback.into(), ..Self::new(DecisionKind::Reject) }
    }

    /// The decision when there is neither a handler nor a front that answers.
    pub fn nobody_to_ask() -> Self {
        Self::new(DecisionKind::DeniedWithNobodyToAsk)
    }

    /// Whether it may be done.
    pub fn is_approved(&self) -> bool {
        self.kind.is_approved()
    }
}

/// A form to be filled in.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Elicitation {
    /// What it is about.
    pub message: String,
    /// The fields, as JSON Schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Value>,
    /// `form` or `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The page to open, in the mode `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Who asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation_source: Option<String>,
}

/// A form that was filled in, or not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ElicitationAnswer {
    /// `accept`, `decline` or `cancel`.
    pub action: String,
    /// The values, if accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Map<String, Value>>,
}

/// A question to the person.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The question.
    pub question: String,
    /// Answers to choose from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// Whether another answer may be typed.
    #[serde(default = "yes")]
    pub allow_freeform: bool,
}

fn yes() -> bool {
    true
}

/// An answer to a [`Question`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserAnswer {
    /// The answer.
    pub answer: String,
    /// Whether it was typed rather than chosen.
    pub was_freeform: bool,
}

/// A canvas that is open.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OpenCanvas {
    /// Chosen by whoever opened it.
    pub instance_id: String,
    /// Whose it is: `scope:name`.
    pub extension_id: String,
    /// The extension's name.
    pub extension_name: String,
    /// Which of the extension's canvases.
    pub canvas_id: String,
    /// What to call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// A word about its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The page to show.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What it was opened with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}
