//! Turns: from a prompt through the hooks to the agent, and on until it may stop.

use parking_lot::Mutex;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use super::Session;
use super::StartSource;
use super::message::TurnEnd;
use super::outcome::ToolOutcome;
use super::queue::Next;
use super::queue::Queued;
use super::tool_call::CallError;
use super::tool_call::ToolCall;
use crate::front::AgentError;
use crate::front::AgentPrompt;
use crate::front::Answer;
use crate::front::Context;
use crate::front::ErrorContext;
use crate::front::StopReason;
use crate::hooks::lifecycle;
use crate::hooks::lifecycle::AgentStop;
use crate::hooks::lifecycle::ErrorHandling;
use crate::hooks::lifecycle::ErrorOccurred;
use crate::hooks::prompt::Submitted;
use crate::hooks::prompt::Transformed;

/// How often in a row `onAgentStop` may keep an agent going. After that it stops, whoever objects:
/// a condition that eight attempts did not meet will not be met by the ninth.
pub const MAX_CONSECUTIVE_BLOCKS: u32 = 8;

/// The most that waits to be told to the agent with the next prompt.
pub const MAX_WAITING_CONTEXTS: usize = 100;

/// How long an agent may take to stop after it was told to. Then it is not listened to any more.
const CANCEL_DEADLINE: Duration = Duration::from_secs(5);

impl Session {
    /// Works until nothing waits.
    pub(super) async fn work(self) {
        let idle = || {
            let (mode, aborted) = {
                let mut facts = self.facts();
                (facts.mode.clone(), std::mem::take(&mut facts.aborted))
            };
            let mut data = if aborted { json!({ "aborted": true }) } else { json!({}) };
            self.emit_ephemeral("assistant.idle", data.clone());
            data["mode"] = mode.into();
            self.emit_ephemeral("session.idle", data);
        };
        loop {
            let (mut queued, aborts) = match self.0.queue.next(&self.0.aborts, idle) {
                Next::Message(queued, aborts) => (queued, aborts),
                Next::Steering => {
                    self.0.queue.steered().await;
                    continue;
                }
                Next::Idle => return,
            };
            self.emit_ephemeral("pending_messages.modified", json!({}));
            // In a task of its own: an agent or a front that panics must not take the session along.
            let done = queued.done.take();
            let turn = tokio::spawn(self.clone().turn(*queued, aborts)).await;
            let end = turn.unwrap_or_else(|error| {
                let message = format!("the turn ended unexpectedly: {error}");
                self.emit("session.error", json!({ "errorType": "system", "message": message }));
                let context = ErrorContext::System;
                TurnEnd::Failed(AgentError { message, context, recoverable: false, native: None })
            });
            self.0.bus.sync().await;
            if let Some(done) = done {
                // Whoever asked may have lost interest.
                let _ = done.send(end);
            }
        }
    }

    /// Does something for a turn, unless the turn is aborted; it is dropped then.
    async fn unless_aborted<T>(&self, aborts: u64, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.aborted_after(aborts) => None,
            done = work => Some(done),
        }
    }

    /// Waits for an abort after so many.
    pub(super) async fn aborted_after(&self, aborts: u64) {
        let mut receiver = self.0.aborts.subscribe();
        let mut changed = std::pin::pin!(receiver.wait_for(|count| *count > aborts));
        // Those who wait are told one after the other. Looking for oneself lets the turn notice before the
        // tools that run in it do.
        std::future::poll_fn(|cx| {
            if *self.0.aborts.borrow() > aborts {
                return Poll::Ready(());
            }
            changed.as_mut().poll(cx).map(drop)
        })
        .await;
    }

    /// The running turn, and what waits, is not wanted any more.
    pub fn abort(&self, reason: &str) {
        self.0.queue.abort(|| {
            self.facts().aborted = true;
            self.emit("abort", json!({ "reason": reason }));
            self.0.aborts.send_modify(|count| *count += 1);
        });
    }

    /// Tells the agent something before the next prompt; an error if too much waits to be told.
    pub fn add_context(&self, context: Context) -> Result<(), String> {
        let contexts = &mut self.facts().contexts;
        if contexts.len() >= MAX_WAITING_CONTEXTS {
            return Err(format!(
                "{MAX_WAITING_CONTEXTS} notifications wait for the next prompt already"
            ));
        }
        contexts.push(context);
        Ok(())
    }

    /// Runs the prompt hooks; an error if the prompt was blocked.
    pub(super) async fn prepare(&self, queued: &Queued) -> Result<AgentPrompt, TurnEnd> {
        let message = &queued.message;
        self.facts().user_requests += 1;
        let submitted = self.hooks().run(Submitted::new(&message.prompt)).await;
        if let Some(blocked) = submitted.blocked {
            let data = json!({
                "warningType": "policy_blocked",
                "message": format!("{} blocked the prompt: {}", blocked.by, blocked.reason),
                "extensionId": blocked.by,
            });
            self.emit("session.warning", data);
            return Err(TurnEnd::Blocked { by: blocked.by, reason: blocked.reason });
        }
        let added = Context::render(&submitted.contexts);
        let transformed = match &*added {
            "" => submitted.prompt.clone(),
            added => format!("{}\n\n{added}", submitted.prompt),
        };
        let rewritten = submitted.rewritten || !added.is_empty();
        let chain = Transformed { prompt: message.prompt.clone(), transformed, rewritten };
        let Transformed { transformed: text, rewritten, .. } = self.hooks().run(chain).await;
        let mut data = json!({
            "content": message.display_prompt.as_ref().unwrap_or(&message.prompt),
            "transformedContent": text,
            "messageId": queued.id,
            "delivery": queued.delivery,
            "interactionId": queued.id,
        });
        if !message.attachments.is_empty() {
            data["attachments"] = message.attachments.to_vec().into();
        }
        if let Some(source) = &message.source {
            data["source"] = source.as_str().into();
        }
        if let Some(mode) = &message.agent_mode {
            data["agentMode"] = mode.as_str().into();
        }
        if submitted.suppress_output {
            data["suppressOutput"] = true.into();
        }
        self.emit("user.message", data);
        Ok(AgentPrompt {
            message_id: queued.id.clone(),
            context: std::mem::take(&mut self.facts().contexts),
            text,
            rewritten,
            attachments: message.attachments.clone(),
            agent_mode: message.agent_mode.clone(),
            native: message.native.clone(),
        })
    }

    #[tracing::instrument(level = "info", name = "prompt", skip_all, fields(session = self.id(), message = %queued.id))]
    async fn turn(self, mut queued: Queued, aborts: u64) -> TurnEnd {
        let source = if self.facts().resumed { StartSource::Resume } else { StartSource::New };
        let begin = self.begin(source, Some(&queued.message.prompt));
        if self.unless_aborted(aborts, begin).await.is_none() {
            return TurnEnd::Cancelled;
        }
        let prepared = match queued.prepared.take() {
            Some(prompt) => Some(Ok(prompt)),
            None => self.unless_aborted(aborts, self.prepare(&queued)).await,
        };
        let mut prompt = match prepared {
            Some(Ok(prompt)) => Arc::new(prompt),
            Some(Err(end)) => return end,
            None => return TurnEnd::Cancelled,
        };
        let mut blocks = 0;
        let mut retries = 0;
        loop {
            let outcome = self.ask_agent(prompt.clone(), aborts).await;
            match outcome {
                // An agent that says so may have given up by itself, after a refusal for example.
                Ok(_) if *self.0.aborts.borrow() > aborts => return TurnEnd::Cancelled,
                Ok(answer) => {
                    let next = self.keep_going(&answer.stop, blocks);
                    let next = self.unless_aborted(aborts, next).await;
                    let Some(next) = next.flatten() else { return TurnEnd::Ended(answer) };
                    blocks += 1;
                    retries = 0;
                    prompt = Arc::new(next);
                }
                Err(error) => {
                    let again = self.try_again(&error, &mut retries);
                    if self.unless_aborted(aborts, again).await != Some(true) {
                        return TurnEnd::Failed(error);
                    }
                }
            }
        }
    }

    /// Has the agent work on a prompt, until it stops or is stopped.
    async fn ask_agent(&self, prompt: Arc<AgentPrompt>, aborts: u64) -> Result<Answer, AgentError> {
        // A session without an agent takes no messages.
        let Some(agent) = &self.0.options.agent else { return Ok(StopReason::end_turn().into()) };
        let turn = Arc::new(Turn::new(self.clone(), aborts));
        let mut start = json!({ "turnId": turn.id, "interactionId": prompt.message_id });
        if let Some(model) = self.facts().model.clone() {
            start["model"] = model.into();
        }
        self.emit("assistant.turn_start", start);
        let mut working = agent.prompt(turn.clone(), prompt);
        let outcome = tokio::select! {
            biased;
            () = turn.cancelled() => {
                agent.cancel();
                let stopped = tokio::time::timeout(CANCEL_DEADLINE, &mut working).await;
                stopped.unwrap_or(Ok(StopReason::cancelled().into()))
            }
            outcome = &mut working => outcome,
        };
        drop(working);
        turn.finish();
        self.emit("assistant.turn_end", json!({ "turnId": turn.id }));
        // An agent that was stopped may call that an error, or an ordinary end.
        if turn.is_cancelled() { Ok(StopReason::cancelled().into()) } else { outcome }
    }

    /// Asks extensions whether the agent may stop; what it is told if it may not.
    async fn keep_going(&self, reason: &StopReason, blocks: u32) -> Option<AgentPrompt> {
        let chain = AgentStop {
            stop_reason: reason.0.clone(),
            transcript: self.transcript(),
            active: blocks > 0,
            blocked: Vec::new(),
        };
        let blocked = self.hooks().run(chain).await.blocked;
        if blocked.is_empty() {
            return None;
        }
        if blocks >= MAX_CONSECUTIVE_BLOCKS {
            let names: Vec<_> = blocked.iter().map(|blocked| blocked.by.as_str()).collect();
            let message = format!(
                "{} kept the agent going {MAX_CONSECUTIVE_BLOCKS} times in a row; it stops now",
                names.join(", ")
            );
            let data = json!({ "warningType": "stop_hook_limit", "message": message });
            self.emit("session.warning", data);
            return None;
        }
        let text = lifecycle::reasons(&blocked);
        let message_id = crate::ids::unique();
        let data = json!({
            "content": text,
            "transformedContent": text,
            "messageId": message_id,
            "source": "system",
            "delivery": "steering",
        });
        self.emit("user.message", data);
        let context = std::mem::take(&mut self.facts().contexts);
        Some(AgentPrompt { message_id, context, text, ..AgentPrompt::default() })
    }

    /// Where the session is recorded, if it is.
    pub(super) fn transcript(&self) -> Option<String> {
        let path = self.folder().join(crate::events::FILE_NAME);
        self.0.options.record.then(|| path.to_string_lossy().into_owned())
    }

    /// Asks extensions what to do about an error; true if it is to be tried again.
    async fn try_again(&self, error: &AgentError, retries: &mut u64) -> bool {
        let chain = self.hooks().run(ErrorOccurred::new(error)).await;
        for said in &chain.notifications {
            let data = json!({
                "infoType": "notification",
                "message": said.text,
                "extensionId": said.extension,
            });
            self.emit("session.info", data);
        }
        let again = chain.handling == Some(ErrorHandling::Retry) && *retries < chain.retries;
        if again {
            *retries += 1;
            return true;
        }
        let skip = chain.skip && chain.handling != Some(ErrorHandling::Abort);
        if !skip {
            let mut data = json!({
                "errorType": error.context,
                "message": error.message,
                "recoverable": error.recoverable,
            });
            if chain.suppress_output {
                data["suppressOutput"] = true.into();
            }
            self.emit("session.error", data);
        }
        if chain.handling == Some(ErrorHandling::Abort) {
            self.0.queue.clear();
        }
        false
    }
}

/// A prompt that is being worked on; the agent tells it what happens.
pub struct Turn {
    session: Session,
    id: String,
    /// Aborts before its prompt was taken up.
    aborts: u64,
    text: Mutex<Text>,
}

/// What the agent has said of a message that is not complete.
#[derive(Default)]
struct Text {
    message: Option<(String, String)>,
    reasoning: Option<(String, String)>,
}

impl Turn {
    fn new(session: Session, aborts: u64) -> Self {
        Self { session, id: crate::ids::unique(), aborts, text: Mutex::default() }
    }

    /// Identifies it in events.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The session it is a turn of.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Waits until the turn is not wanted any more.
    pub async fn cancelled(&self) {
        self.session.aborted_after(self.aborts).await;
    }

    /// Calls an extension's tool for this turn: once it is cancelled, not at all.
    pub async fn call_tool(&self, call: ToolCall) -> Result<ToolOutcome, CallError> {
        self.session.call_tool_since(call, self.aborts).await
    }

    /// Whether the turn is not wanted any more.
    pub fn is_cancelled(&self) -> bool {
        *self.session.0.aborts.borrow() > self.aborts
    }

    /// The agent says the next part of a message.
    pub fn delta(&self, text: &str) {
        let (id, is_new) = append(&mut self.text().message, text);
        if is_new {
            self.session.emit_ephemeral("assistant.message_start", json!({ "messageId": id }));
        }
        let data = json!({ "messageId": id, "deltaContent": text });
        self.session.emit_ephemeral("assistant.message_delta", data);
    }

    /// The agent has said a whole message. Its parts need not have been told.
    pub fn message(&self, text: &str) {
        let id = self.text().message.take().map(|(id, _)| id);
        self.say(id, text);
    }

    /// The agent thinks the next part of a thought.
    pub fn reasoning_delta(&self, text: &str) {
        let (id, _) = append(&mut self.text().reasoning, text);
        let data = json!({ "reasoningId": id, "deltaContent": text });
        self.session.emit_ephemeral("assistant.reasoning_delta", data);
    }

    /// The agent has thought a whole thought.
    pub fn reasoning(&self, text: &str) {
        let id = self.text().reasoning.take().map(|(id, _)| id);
        self.think(id, text);
    }

    /// What asking the model cost: the public contract's `assistant.usage`.
    pub fn usage(&self, data: Value) {
        self.session.count_usage(&data);
        self.session.emit_ephemeral("assistant.usage", data);
    }

    /// The message or thought under way is complete, because something else begins.
    pub fn finish(&self) {
        let Text { message, reasoning } = std::mem::take(&mut *self.text());
        if let Some((id, text)) = reasoning {
            self.think(Some(id), &text);
        }
        if let Some((id, text)) = message {
            self.say(Some(id), &text);
        }
    }

    fn say(&self, id: Option<String>, text: &str) {
        let id = id.unwrap_or_else(crate::ids::unique);
        self.session.facts().final_message = Some(text.to_owned());
        let mut data = json!({ "messageId": id, "content": text, "turnId": self.id });
        if let Some(model) = self.session.facts().model.clone() {
            data["model"] = model.into();
        }
        self.session.emit("assistant.message", data);
    }

    fn think(&self, id: Option<String>, text: &str) {
        let id = id.unwrap_or_else(crate::ids::unique);
        self.session.emit("assistant.reasoning", json!({ "reasoningId": id, "content": text }));
    }

    fn text(&self) -> parking_lot::MutexGuard<'_, Text> {
        self.text.lock()
    }
}

/// Adds to what was said so far; returns its id and whether it has just begun.
fn append(so_far: &mut Option<(String, String)>, text: &str) -> (String, bool) {
    let is_new = so_far.is_none();
    let (id, all) = so_far.get_or_insert_with(|| (crate::ids::unique(), String::new()));
    all.push_str(text);
    (id.clone(), is_new)
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use async_trait::async_trait;

    use super::*;
    use crate::session::Agent;
    use crate::session::Message;
    use crate::session::SessionOptions;

    /// Keeps the first prompt, and answers as it was told to.
    struct Recorder {
        got: OnceLock<Arc<AgentPrompt>>,
        answer: Answer,
    }

    #[async_trait]
    impl Agent for Recorder {
        async fn prompt(
            &self,
            _turn: Arc<Turn>,
            prompt: Arc<AgentPrompt>,
        ) -> Result<Answer, AgentError> {
            self.got.set(prompt).unwrap();
            Ok(self.answer.clone())
        }

        fn cancel(&self) {}
    }

    #[tokio::test]
    async fn what_comes_with_a_message_is_not_copied_and_the_answer_is_the_agents_own() {
        let temp = tempfile::tempdir().unwrap();
        let native = Some(json!({ "stopReason": "refusal", "usage": { "inputTokens": 3 } }));
        let answer = Answer { stop: StopReason("refusal".to_owned()), native };
        let agent = Arc::new(Recorder { got: OnceLock::new(), answer: answer.clone() });
        let session = Session::new(SessionOptions {
            agent: Some(agent.clone()),
            ..SessionOptions::new(temp.path().join("cwd"), temp.path().join("home"))
        })
        .unwrap();
        let native = Arc::new(json!({ "prompt": [{ "type": "image", "data": "AAAA" }] }));
        let attachments: Arc<[Value]> = [json!({ "type": "blob", "data": "AAAA" })].into();
        let message = Message {
            native: Some(native.clone()),
            attachments: attachments.clone(),
            ..Message::new("look")
        };
        let end = session.send_and_wait(message).await.unwrap();
        let got = agent.got.get().unwrap();
        assert!(Arc::ptr_eq(got.native.as_ref().unwrap(), &native));
        assert!(Arc::ptr_eq(&got.attachments, &attachments));
        assert!(!got.rewritten && got.text == "look");
        assert!(matches!(end, TurnEnd::Ended(ended) if ended == answer));
    }
}
