//! Hooks at the beginning and the end of things: sessions, turns, sub-agents, errors.

use std::ops::ControlFlow;

use serde::ser::SerializeMap;
use serde_json::Map;
use serde_json::Value;

use super::Chain;
use super::Hook;
use super::Output;
use super::filled;
use super::flag;
use super::text;
use crate::front::AgentError;
use crate::front::Context;
use crate::hooks::prompt::Blocked;

/// The most often an error is tried again, whatever extensions ask for.
pub const MAX_RETRIES: u64 = 10;

/// `onSessionStart`.
#[derive(Debug, Default)]
pub struct SessionStart {
    /// `new`, `resume` or `startup`.
    pub source: &'static str,
    /// The prompt the session was started with.
    pub initial_prompt: Option<String>,
    /// What extensions tell the agent before the first prompt.
    pub contexts: Vec<Context>,
}

impl Chain for SessionStart {
    const HOOK: Hook = Hook::SessionStart;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        input.serialize_entry("source", self.source)?;
        if let Some(prompt) = &self.initial_prompt {
            input.serialize_entry("initialPrompt", prompt)?;
        }
        Ok(())
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(text) = filled(&mut output, "additionalContext") {
            self.contexts.push(Context { extension: extension.to_owned(), text });
        }
        ControlFlow::Continue(())
    }
}

/// `onSessionEnd`.
#[derive(Debug, Default)]
pub struct SessionEnd {
    /// Why it ends.
    pub reason: &'static str,
    /// The last thing the agent said.
    pub final_message: Option<String>,
    /// What went wrong, if something did.
    pub error: Option<String>,
    /// Summaries, by extension.
    pub summaries: Vec<Context>,
    /// What was cleaned up, by extension.
    pub cleanup: Vec<Context>,
    /// Whether summaries and cleanup are kept from the person.
    pub suppress_output: bool,
}

impl Chain for SessionEnd {
    const HOOK: Hook = Hook::SessionEnd;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        input.serialize_entry("reason", self.reason)?;
        if let Some(message) = &self.final_message {
            input.serialize_entry("finalMessage", message)?;
        }
        if let Some(error) = &self.error {
            input.serialize_entry("error", error)?;
        }
        Ok(())
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(text) = filled(&mut output, "sessionSummary") {
            self.summaries.push(Context { extension: extension.to_owned(), text });
        }
        if let Some(Value::Array(actions)) = output.remove("cleanupActions") {
            let texts = actions.iter().filter_map(Value::as_str);
            self.cleanup.extend(
                texts
                    .map(|text| Context { extension: extension.to_owned(), text: text.to_owned() }),
            );
        }
        self.suppress_output |= flag(&output, "suppressOutput");
        ControlFlow::Continue(())
    }
}

/// `onAgentStop`.
#[derive(Debug)]
pub struct AgentStop {
    /// Why the agent stopped.
    pub stop_reason: String,
    /// The session's record.
    pub transcript: Option<String>,
    /// Whether the agent ran because a stop was blocked before.
    pub active: bool,
    /// Who wants it to go on, and what they tell it.
    pub blocked: Vec<Blocked>,
}

impl Chain for AgentStop {
    const HOOK: Hook = Hook::AgentStop;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        input.serialize_entry("stopReason", &self.stop_reason)?;
        input.serialize_entry("stopHookActive", &self.active)?;
        if let Some(path) = &self.transcript {
            input.serialize_entry("transcriptPath", path)?;
        }
        Ok(())
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if output.get("decision").is_some_and(|decision| decision == "block") {
            let reason = filled(&mut output, "reason").unwrap_or_else(|| "Please continue.".into());
            self.blocked.push(Blocked { by: extension.to_owned(), reason });
        }
        ControlFlow::Continue(())
    }
}

/// What is to be done about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorHandling {
    /// Go on as if it had not happened.
    Skip,
    /// Try again.
    Retry,
    /// Give up, and what waits with it.
    Abort,
}

/// `onErrorOccurred`.
#[derive(Debug)]
pub struct ErrorOccurred<'a> {
    /// The error.
    pub error: &'a AgentError,
    /// What extensions want done: giving up beats trying again beats going on.
    pub handling: Option<ErrorHandling>,
    /// Whether going on was asked for, for when trying again did not help.
    pub skip: bool,
    /// How often to try again.
    pub retries: u64,
    /// What the person is told, by extension.
    pub notifications: Vec<Context>,
    /// Whether the error itself is kept from the person.
    pub suppress_output: bool,
}

impl<'a> ErrorOccurred<'a> {
    /// Of an error as it came.
    pub fn new(error: &'a AgentError) -> Self {
        Self {
            error,
            handling: None,
            skip: false,
            retries: 0,
            notifications: Vec::new(),
            suppress_output: false,
        }
    }
}

impl Chain for ErrorOccurred<'_> {
    const HOOK: Hook = Hook::ErrorOccurred;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        input.serialize_entry("error", &self.error.message)?;
        input.serialize_entry("errorContext", &self.error.context)?;
        input.serialize_entry("recoverable", &self.error.recoverable)
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        let handling = match text(&mut output, "errorHandling").as_deref() {
            Some("retry") => Some(ErrorHandling::Retry),
            Some("skip") => Some(ErrorHandling::Skip),
            Some("abort") => Some(ErrorHandling::Abort),
            _ => None,
        };
        if handling == Some(ErrorHandling::Retry) {
            let count = output.get("retryCount").and_then(Value::as_u64).unwrap_or(1);
            self.retries = self.retries.max(count.min(MAX_RETRIES));
        }
        self.skip |= handling == Some(ErrorHandling::Skip);
        self.handling = self.handling.max(handling);
        if let Some(text) = filled(&mut output, "userNotification") {
            self.notifications.push(Context { extension: extension.to_owned(), text });
        }
        self.suppress_output |= flag(&output, "suppressOutput");
        ControlFlow::Continue(())
    }
}

/// `onSubagentStart`.
#[derive(Debug)]
pub struct SubagentStart {
    /// What is known of the sub-agent.
    pub agent: Map<String, Value>,
    /// What extensions tell it before its first prompt.
    pub contexts: Vec<Context>,
}

impl Chain for SubagentStart {
    const HOOK: Hook = Hook::SubagentStart;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        self.agent.iter().try_for_each(|(name, value)| input.serialize_entry(name, value))
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(text) = filled(&mut output, "additionalContext") {
            self.contexts.push(Context { extension: extension.to_owned(), text });
        }
        ControlFlow::Continue(())
    }
}

/// `onSubagentStop`.
#[derive(Debug)]
pub struct SubagentStop {
    /// What is known of the sub-agent.
    pub agent: Map<String, Value>,
    /// Why it stopped.
    pub stop_reason: String,
    /// What it returns, as rewritten so far.
    pub response: String,
    /// Who wants it to go on, and what they tell it.
    pub blocked: Vec<Blocked>,
}

impl Chain for SubagentStop {
    const HOOK: Hook = Hook::SubagentStop;

    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error> {
        self.agent.iter().try_for_each(|(name, value)| input.serialize_entry(name, value))?;
        input.serialize_entry("stopReason", &self.stop_reason)?;
        input.serialize_entry("response", &self.response)
    }

    fn take(&mut self, extension: &str, mut output: Output) -> ControlFlow<()> {
        if let Some(response) = text(&mut output, "modifiedResponse") {
            self.response = response;
        }
        if output.get("decision").is_some_and(|decision| decision == "block") {
            let reason = filled(&mut output, "reason").unwrap_or_else(|| "Please continue.".into());
            self.blocked.push(Blocked { by: extension.to_owned(), reason });
        }
        ControlFlow::Continue(())
    }
}

/// What those who want an agent to go on tell it, as one message.
pub fn reasons(blocked: &[Blocked]) -> String {
    match blocked {
        [only] => only.reason.clone(),
        several => several
            .iter()
            .map(|blocked| format!("[{}] {}", blocked.by, blocked.reason))
            .collect::<Vec<_>>()
            .join("\n\n"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::front::ErrorContext;

    fn output(value: Value) -> Output {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn giving_up_beats_trying_again_beats_going_on() {
        let error = AgentError {
            message: "x".into(),
            context: ErrorContext::ModelCall,
            recoverable: true,
            native: None,
        };
        let mut chain = ErrorOccurred::new(&error);
        let _ = chain.take("a", output(json!({ "errorHandling": "retry", "retryCount": 2 })));
        let _ = chain.take("b", output(json!({ "errorHandling": "skip" })));
        let _ = chain.take("c", output(json!({ "errorHandling": "retry", "retryCount": 500 })));
        assert_eq!(chain.handling, Some(ErrorHandling::Retry));
        assert_eq!((chain.retries, chain.skip), (MAX_RETRIES, true));
        let _ = chain.take("d", output(json!({ "errorHandling": "abort" })));
        assert_eq!(chain.handling, Some(ErrorHandling::Abort));
    }

    #[test]
    fn every_reason_to_go_on_is_told_with_its_name() {
        let blocked = |by: &str, reason: &str| Blocked { by: by.into(), reason: reason.into() };
        assert_eq!(reasons(&[blocked("a", "tests fail")]), "tests fail");
        let both = reasons(&[blocked("a", "tests fail"), blocked("b", "docs are missing")]);
        assert_eq!(both, "[a] tests fail\n\n[b] docs are missing");
    }
}
