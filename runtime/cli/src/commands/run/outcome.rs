//! How a run has ended: for the person, for a script, and as exit code.

use serde_json::Value;
use serde_json::json;
use tenon_host::front::Answer;
use tenon_host::front::StopReason;
use tenon_host::session::TurnEnd;

use super::interrupts;
use crate::error::CliError;

/// Why an agent stops that does not want to answer.
const REFUSAL: &str = "refusal";

/// The exit code when an extension blocked the prompt, or the agent refused.
pub const NOT_ALLOWED: u8 = 3;

/// How a run has ended.
#[derive(Debug)]
pub enum Outcome {
    /// The agent has stopped by itself, for this reason.
    Ended(String),
    /// The agent does not want to, or not any more: its stop reason.
    Refused(String),
    /// An extension does not let the prompt through.
    Blocked {
        /// `scope:name`.
        by: String,
        /// Its reason.
        reason: String,
    },
    /// The person does not want it any more.
    Cancelled,
    /// Something went wrong.
    Failed(CliError),
}

impl Outcome {
    /// What a prompt came to.
    pub fn of(end: TurnEnd, failed: impl FnOnce(String) -> CliError) -> Self {
        match end {
            TurnEnd::Ended(Answer { stop, .. }) => {
                // Nobody has cancelled it: some agents give up when something is not permitted.
                let is_refused = stop == StopReason::cancelled() || stop.0 == REFUSAL;
                if is_refused { Self::Refused(stop.0) } else { Self::Ended(stop.0) }
            }
            TurnEnd::Blocked { by, reason } => Self::Blocked { by, reason },
            TurnEnd::Cancelled => Self::Cancelled,
            TurnEnd::Failed(error) => Self::Failed(failed(error.message)),
        }
    }

    /// What the program ends with.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Ended(_) => 0,
            Self::Failed(_) => 1,
            Self::Refused(_) | Self::Blocked { .. } => NOT_ALLOWED,
            Self::Cancelled => interrupts::EXIT_CODE,
        }
    }

    /// The same as a word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Ended(_) => "ended",
            Self::Refused(_) => "refused",
            Self::Blocked { .. } => "blocked",
            Self::Cancelled => "cancelled",
            Self::Failed(_) => "failed",
        }
    }

    /// Why the agent stopped, if it did by itself.
    fn stop_reason(&self) -> Option<&str> {
        match self {
            Self::Ended(reason) | Self::Refused(reason) => Some(reason),
            Self::Blocked { .. } | Self::Cancelled | Self::Failed(_) => None,
        }
    }

    /// What went wrong, if something did.
    fn error(&self) -> Option<String> {
        match self {
            Self::Blocked { by, reason } => Some(format!("{by} blocked the prompt: {reason}")),
            Self::Failed(error) => Some(error.message().to_owned()),
            Self::Ended(_) | Self::Refused(_) | Self::Cancelled => None,
        }
    }

    /// The last line of a run that is printed as JSON.
    pub fn result(&self, agent: Option<&str>, session: Option<&str>) -> Value {
        let mut data = json!({ "outcome": self.name() });
        if let Some(reason) = self.stop_reason() {
            data["stopReason"] = reason.into();
        }
        data["sessionId"] = session.into();
        data["agent"] = agent.into();
        if let Some(error) = self.error() {
            data["error"] = error.into();
        }
        json!({ "type": "run.result", "data": data })
    }

    /// What there is to complain about.
    pub fn into_error(self) -> Option<CliError> {
        match self {
            Self::Failed(error) => Some(error),
            Self::Blocked { by, reason } => {
                let name = by.split_once(':').map_or(by.as_str(), |(_, name)| name).to_owned();
                let error = CliError::new(format!("{by} blocked the prompt: {reason}"));
                Some(error.hint(format!("run `tenon ext inspect {name}` for details")))
            }
            Self::Refused(reason) if reason == REFUSAL => Some(
                CliError::new("the agent refused to answer").hint("say it in another way, or less"),
            ),
            Self::Refused(_) => Some(
                CliError::new("the agent stopped because something was not permitted")
                    .hint("--permissions says what is permitted in advance"),
            ),
            Self::Ended(_) | Self::Cancelled => None,
        }
    }

    /// A reason to stop that is none to be glad about, in words.
    pub fn stopped_early(&self) -> Option<String> {
        let Self::Ended(reason) = self else { return None };
        match reason.as_str() {
            "end_turn" => None,
            "max_tokens" => Some("the answer is cut off: it reached the model's limit".to_owned()),
            "max_turn_requests" => {
                Some("the agent asked the model as often as it may in a turn".to_owned())
            }
            other => Some(format!("the agent stopped: {other}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_host::front::AgentError;
    use tenon_host::front::ErrorContext;

    use super::*;

    fn ended(reason: &str) -> Outcome {
        Outcome::of(TurnEnd::Ended(StopReason(reason.to_owned()).into()), CliError::new)
    }

    fn blocked() -> Outcome {
        let (by, reason) = ("project:rules".to_owned(), "no".to_owned());
        Outcome::of(TurnEnd::Blocked { by, reason }, CliError::new)
    }

    fn failed() -> Outcome {
        let context = ErrorContext::System;
        let error = AgentError {
            message: "it broke".to_owned(),
            context,
            recoverable: false,
            native: None,
        };
        Outcome::of(TurnEnd::Failed(error), CliError::new)
    }

    #[test]
    fn every_end_has_its_exit_code() {
        assert_eq!(ended("end_turn").exit_code(), 0);
        assert_eq!(ended("max_tokens").exit_code(), 0);
        assert_eq!(ended("refusal").exit_code(), 3);
        assert_eq!(ended("cancelled").exit_code(), 3);
        assert_eq!(blocked().exit_code(), 3);
        assert_eq!(Outcome::of(TurnEnd::Cancelled, CliError::new).exit_code(), 130);
        assert_eq!(failed().exit_code(), 1);
    }

    #[test]
    fn the_result_says_what_a_script_wants_to_know() {
        let result = |outcome: Outcome| outcome.result(Some("demo"), Some("s")).to_string();
        assert_eq!(
            result(ended("end_turn")),
            r#"{"type":"run.result","data":{"outcome":"ended","stopReason":"end_turn","sessionId":"s","agent":"demo"}}"#
        );
        assert_eq!(
            result(blocked()),
            r#"{"type":"run.result","data":{"outcome":"blocked","sessionId":"s","agent":"demo","error":"project:rules blocked the prompt: no"}}"#
        );
        assert_eq!(
            failed().result(None, None).to_string(),
            r#"{"type":"run.result","data":{"outcome":"failed","sessionId":null,"agent":null,"error":"it broke"}}"#
        );
    }

    #[test]
    fn only_an_answer_that_is_cut_off_is_remarked_upon() {
        assert_eq!(ended("end_turn").stopped_early(), None);
        assert!(ended("max_tokens").stopped_early().is_some());
        assert_eq!(blocked().stopped_early(), None);
    }
}
