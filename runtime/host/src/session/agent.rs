//! What answers the prompts of a session.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use super::Turn;
use super::WeakSession;
use crate::front::AgentError;
use crate::front::AgentPrompt;
use crate::front::Answer;

/// Answers prompts.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Tools the agent has of its own, by the names extensions know. An extension's tool of the same name
    /// must say `overridesBuiltInTool`.
    fn built_in_tools(&self) -> Vec<String> {
        Vec::new()
    }

    /// The session that it answers for. An agent that keeps it must not keep it alive.
    fn attach(&self, _session: WeakSession) {}

    /// Works on a prompt to its end. What happens on the way is told to the turn. After
    /// [`Agent::cancel`] it returns soon, with the stop reason `cancelled`.
    async fn prompt(&self, turn: Arc<Turn>, prompt: Arc<AgentPrompt>)
    -> Result<Answer, AgentError>;

    /// The running prompt is not wanted any more.
    fn cancel(&self);

    /// Whether it can be told something while it works.
    fn can_steer(&self) -> bool {
        false
    }

    /// Adds to the prompt that is being worked on. False: it is too late, and the message comes next.
    async fn steer(&self, _prompt: &AgentPrompt) -> bool {
        false
    }

    /// The tools of extensions have changed; [`crate::Session::tools`] lists them.
    fn tools_changed(&self) {}

    /// The session has ended.
    async fn close(&self) {}

    /// The models there are, each with at least an `id`.
    fn models(&self) -> Vec<Value> {
        Vec::new()
    }

    /// Uses another model from the next prompt on.
    async fn set_model(&self, _model: &str, _options: &Value) -> Result<(), String> {
        Err("the agent does not let its model be changed".to_owned())
    }

    /// Works in another mode (`interactive`, `plan`, `autopilot`) from now on.
    async fn set_mode(&self, _mode: &str) -> Result<(), String> {
        Ok(())
    }
}
