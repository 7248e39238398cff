//! Messages for the agent: what is sent, why it may not be taken, and what it comes to.

use std::sync::Arc;

use serde_json::Value;

use crate::front::AgentError;
use crate::front::Answer;

/// The most prompts that wait. An extension that sends several in answer to each ends here.
pub const MAX_QUEUED_PROMPTS: usize = 100;

/// The most prompts of extensions in a row, without one of the person between. An extension that sends one
/// whenever the session is idle ends here: it never has more than one waiting, and each costs what asking a model
/// costs.
pub(super) const MAX_UNATTENDED_PROMPTS: usize = 100;

/// When a message is worked on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Delivery {
    /// After everything that waits already.
    #[default]
    Enqueue,
    /// At once: the running turn is told, or, if the agent cannot be, right after it.
    Immediate,
}

/// A message for the agent.
#[derive(Debug, Clone, Default)]
pub struct Message {
    /// The text.
    pub prompt: String,
    /// What is shown in its place.
    pub display_prompt: Option<String>,
    /// Files, folders, selections and blobs, as the public contract describes them.
    pub attachments: Arc<[Value]>,
    /// When it is worked on.
    pub delivery: Delivery,
    /// Who sent it, when it was not the person.
    pub source: Option<String>,
    /// The mode asked for.
    pub agent_mode: Option<String>,
    /// The message as the front was given it, for an agent that understands more than text: the parameters
    /// of an ACP `session/prompt`. The text in it is that of `prompt`.
    pub native: Option<Arc<Value>>,
}

impl Message {
    /// A message from the person.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }
}

/// A message could not be taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SendError {
    /// Nothing answers prompts here.
    #[error("the session has no agent that could answer")]
    NoAgent,
    /// The session has ended.
    #[error("the session has ended")]
    Ended,
    /// Too many wait.
    #[error(
        "{MAX_QUEUED_PROMPTS} messages are waiting already; try again when the session is idle"
    )]
    Full,
    /// Extensions go on by themselves.
    #[error(
        "extensions have sent {MAX_UNATTENDED_PROMPTS} messages since the last one of the person, who has to \
         send the next"
    )]
    Unattended,
}

/// What a message came to.
#[derive(Debug, Clone)]
pub enum TurnEnd {
    /// The agent has stopped by itself.
    Ended(Answer),
    /// An extension did not let the prompt through.
    Blocked {
        /// `scope:name`.
        by: String,
        /// Its reason.
        reason: String,
    },
    /// It was aborted, or forgotten before its turn came.
    Cancelled,
    /// The agent could not work on it.
    Failed(AgentError),
}
