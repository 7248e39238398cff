//! Hooks: which there are, and how one is run through every extension that has it.
//!
//! A chain knows what its hook is told and what its answers mean; [`Runner::run`] takes care of the
//! rest: order, deadlines, errors, events.

pub mod lifecycle;
pub mod prompt;
pub mod tool_use;
#[cfg(test)]
pub mod written;

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use serde::Serialize;
use serde::Serializer;
use serde::ser::SerializeMap;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use serde_json::value::RawValue;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::ScriptError;
use tracing::Instrument;
use tracing::debug_span;

pub use crate::extension::Hook;

use crate::events::Bus;
use crate::events::EventData;
use crate::extensions::CallFailure;
use crate::extensions::Extensions;
use crate::extensions::HookTarget;
use crate::extensions::View;

/// What an extension's hook answered.
pub type Output = Map<String, Value>;

/// One hook on its way through the extensions.
pub trait Chain {
    /// Which hook.
    const HOOK: Hook;

    /// Whether it can say no. Only then does it matter that a hook fails closed.
    const DECIDES: bool = false;

    /// Tells the next extension, field by field: it sees what those before it changed.
    fn input<M: SerializeMap>(&self, input: &mut M) -> Result<(), M::Error>;

    /// What is wrong with an answer, if it cannot be understood; it then counts as none.
    fn problem(_output: &Output) -> Option<String> {
        None
    }

    /// Takes an extension's answer; `Break` ends the chain.
    fn take(&mut self, extension: &str, output: Output) -> ControlFlow<()>;

    /// An extension that declared `failClosed` did not answer, in a hook that decides.
    fn fail_closed(&mut self, _extension: &str, _why: &str) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// A text of an answer.
pub fn text(output: &mut Output, field: &str) -> Option<String> {
    match output.remove(field)? {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// A text of an answer, unless it is empty.
pub fn filled(output: &mut Output, field: &str) -> Option<String> {
    text(output, field).filter(|text| !text.trim().is_empty())
}

/// A yes or no of an answer.
pub fn flag(output: &Output, field: &str) -> bool {
    output.get(field) == Some(&Value::Bool(true))
}

/// Runs chains.
pub struct Runner<'a> {
    pub extensions: &'a Extensions,
    /// Those that served when it was made; all its chains meet the same.
    pub view: View<'a>,
    pub bus: &'a Bus,
    pub session_id: &'a str,
    pub cwd: &'a std::path::Path,
}

impl Runner<'_> {
    /// Asks every extension that has the hook, in order.
    pub async fn run<C: Chain>(&self, mut chain: C) -> C {
        let mut last = None;
        while let Some(target) = self.view.next_with_hook(last.as_ref(), C::HOOK) {
            let input = self.input(&chain);
            let answer = self.ask(C::HOOK, &target, &input).await;
            let answer = answer.and_then(|answer| match answer.as_object().and_then(C::problem) {
                Some(problem) => Err(CallFailure::Threw(ScriptError::message(problem))),
                None => Ok(answer),
            });
            let flow = match answer {
                Ok(Value::Object(output)) => chain.take(&target.id, output),
                Ok(_) => ControlFlow::Continue(()),
                Err(failure) => {
                    let denies = C::DECIDES && target.fails_closed;
                    let why = self.report(C::HOOK, &target, &failure, denies);
                    if denies {
                        chain.fail_closed(&target.id, &why)
                    } else {
                        ControlFlow::Continue(())
                    }
                }
            };
            if flow.is_break() {
                break;
            }
            last = Some(target.peer.key.clone());
        }
        chain
    }

    /// What the next extension is told. Inputs can be long and hooks many: each is written down once, for the extension
    /// and for those who listen to events.
    fn input<C: Chain>(&self, chain: &C) -> Box<RawValue> {
        let timestamp = chrono::Utc::now().timestamp_millis();
        let input = HookInput { chain, session_id: self.session_id, timestamp, cwd: self.cwd };
        // Plain data always has a JSON text.
        serde_json::value::to_raw_value(&input).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }

    async fn ask(
        &self,
        hook: Hook,
        target: &HookTarget<'_>,
        input: &RawValue,
    ) -> Result<Value, CallFailure> {
        let payload = format!(
            r#"{{"hook":"{}","input":{input},"sessionId":{}}}"#,
            hook.name(),
            Value::from(self.session_id),
        );
        let invocation =
            Invocation { id: crate::ids::unique(), kind: hook.kind(), extension: &target.id };
        let started = invocation.event(Stage::Started { input });
        self.bus.emit("hook.start", started);
        let mut unfinished = Unfinished { bus: self.bus, invocation: Some(invocation) };
        let asked = Instant::now();
        let span = debug_span!("hook", hook = hook.name(), extension = %target.id);
        let answer = self
            .extensions
            .call_within(&target.peer, CallKind::Hook, target.deadline, payload)
            .instrument(span)
            .await;
        self.extensions.count(&target.peer.key, asked.elapsed(), answer.is_err());
        if let Some(invocation) = unfinished.invocation.take() {
            let ended = match &answer {
                Ok(Value::Null) => Stage::Ended { success: true, output: None, error: None },
                Ok(output) => Stage::Ended { success: true, output: Some(output), error: None },
                Err(failure) => Stage::failed(describe(failure)),
            };
            self.bus.emit("hook.end", invocation.event(ended));
        }
        answer
    }

    /// Makes a failure known; returns it in words.
    fn report(
        &self,
        hook: Hook,
        target: &HookTarget<'_>,
        failure: &CallFailure,
        denies: bool,
    ) -> String {
        let name = hook.name();
        let why = match failure {
            CallFailure::Late(deadline) => {
                format!("{name} of {} did not answer within {deadline:?}", target.id)
            }
            failure => format!("{name} of {} failed: {}", target.id, failure.with_place()),
        };
        let consequence =
            if denies { "it is declared failClosed and denies" } else { "it was skipped" };
        let message = format!("{why}; {consequence}");
        self.extensions.note(&target.peer.key, LogLevel::Error, &message);
        self.bus.emit(
            "session.warning",
            json!({
                "warningType": "hook_failed",
                "message": message,
                "extensionId": target.id,
            }),
        );
        why
    }
}

/// All that an extension's hook is told: what the chain says, and where that is.
struct HookInput<'a, C> {
    chain: &'a C,
    session_id: &'a str,
    timestamp: i64,
    cwd: &'a Path,
}

impl<C: Chain> Serialize for HookInput<'_, C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut input = serializer.serialize_map(None)?;
        self.chain.input(&mut input)?;
        input.serialize_entry("sessionId", self.session_id)?;
        input.serialize_entry("timestamp", &self.timestamp)?;
        input.serialize_entry("cwd", &self.cwd.to_string_lossy())?;
        input.end()
    }
}

/// A hook of one extension that is being run.
struct Invocation<'a> {
    id: String,
    /// As events name the hook.
    kind: String,
    /// `scope:name`.
    extension: &'a str,
}

impl Invocation<'_> {
    /// The data of `hook.start` or `hook.end`.
    fn event(&self, stage: Stage<'_>) -> EventData {
        EventData::written(&InvocationEvent {
            hook_invocation_id: &self.id,
            hook_type: &self.kind,
            extension_id: self.extension,
            stage,
        })
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InvocationEvent<'a> {
    hook_invocation_id: &'a str,
    hook_type: &'a str,
    extension_id: &'a str,
    #[serde(flatten)]
    stage: Stage<'a>,
}

/// How far an invocation has come.
#[derive(Serialize)]
#[serde(untagged)]
enum Stage<'a> {
    Started {
        input: &'a RawValue,
    },
    Ended {
        success: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        output: Option<&'a Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<Value>,
    },
}

impl Stage<'_> {
    fn failed(error: Value) -> Self {
        Self::Ended { success: false, output: None, error: Some(error) }
    }
}

/// Says that a hook is over when whoever asked does not wait for its answer.
struct Unfinished<'a> {
    bus: &'a Bus,
    invocation: Option<Invocation<'a>>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(invocation) = self.invocation.take() {
            let error = json!({ "message": "nobody waits for the answer any more" });
            self.bus.emit("hook.end", invocation.event(Stage::failed(error)));
        }
    }
}

fn describe(failure: &CallFailure) -> Value {
    match failure {
        CallFailure::Threw(error) => {
            let mut described = json!({ "message": error.message });
            if let Some(stack) = &error.stack {
                described["stack"] = stack.as_str().into();
            }
            described
        }
        failure => json!({ "message": failure.to_string() }),
    }
}
