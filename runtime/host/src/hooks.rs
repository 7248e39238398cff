//! Hooks: which there are, and how one is run through every extension that has it.
//!
//! A chain knows what its hook is told and what its answers mean; [`Runner::run`] takes care of the
//! rest: order, deadlines, errors, events.

pub mod lifecycle;
pub mod prompt;
pub mod tool_use;

use std::ops::ControlFlow;
use std::time::Instant;

use serde_json::Map;
use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::ScriptError;
use tracing::Instrument;
use tracing::debug_span;

pub use crate::extension::Hook;

use crate::events::Bus;
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

    /// What the next extension is told: it sees what those before it changed.
    fn input(&self) -> Map<String, Value>;

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
            let answer = self.ask(C::HOOK, &target, chain.input()).await;
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

    async fn ask(
        &self,
        hook: Hook,
        target: &HookTarget<'_>,
        mut input: Map<String, Value>,
    ) -> Result<Value, CallFailure> {
        input.insert("sessionId".into(), self.session_id.into());
        input.insert("timestamp".into(), chrono::Utc::now().timestamp_millis().into());
        input.insert("cwd".into(), self.cwd.to_string_lossy().into());
        // Inputs can be long and hooks many: what is passed on is written down once and never copied.
        let payload = format!(
            r#"{{"hook":"{}","input":{},"sessionId":{}}}"#,
            hook.name(),
            serde_json::to_string(&input).unwrap_or_default(),
            Value::from(self.session_id),
        );
        let invocation = Map::from_iter([
            ("hookInvocationId".to_owned(), crate::ids::unique().into()),
            ("hookType".to_owned(), hook.kind().into()),
            ("extensionId".to_owned(), target.id.as_str().into()),
        ]);
        let mut start = invocation.clone();
        start.insert("input".into(), input.into());
        self.bus.emit("hook.start", start.into());
        let mut unfinished = Unfinished { bus: self.bus, invocation: Some(invocation) };
        let asked = Instant::now();
        let span = debug_span!("hook", hook = hook.name(), extension = %target.id);
        let answer = self
            .extensions
            .call_within(&target.peer, CallKind::Hook, target.deadline, payload)
            .instrument(span)
            .await;
        self.extensions.count(&target.peer.key, asked.elapsed(), answer.is_err());
        if let Some(mut end) = unfinished.invocation.take() {
            end.insert("success".into(), answer.is_ok().into());
            match &answer {
                Ok(Value::Null) => {}
                Ok(output) => drop(end.insert("output".into(), output.clone())),
                Err(failure) => drop(end.insert("error".into(), describe(failure))),
            }
            self.bus.emit("hook.end", end.into());
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

/// Says that a hook is over when whoever asked does not wait for its answer.
struct Unfinished<'a> {
    bus: &'a Bus,
    invocation: Option<Map<String, Value>>,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(mut end) = self.invocation.take() {
            end.insert("success".into(), false.into());
            end.insert(
                "error".into(),
                json!({ "message": "nobody waits for the answer any more" }),
            );
            self.bus.emit("hook.end", end.into());
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
