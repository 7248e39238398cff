//! Calls into isolates.

use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use serde_json::Value;
use tenon_protocol::json_values;
use tenon_protocol::message::CallId;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::ScriptError;
use tenon_protocol::message::ToIsolate;
use tokio::sync::oneshot;

use super::Extensions;
use super::Peer;
use super::id_of;
use super::promptness::LOOK;
use super::promptness::Promptness;
use crate::events::Urgency;
use crate::isolates::Incoming;

/// The outcome of a call, as the isolate sends it: a value in JSON, or what was thrown.
pub type Reply = Result<String, ScriptError>;

/// A call did not bring a value.
#[derive(Debug, Clone)]
pub enum CallFailure {
    /// The handler threw.
    Threw(ScriptError),
    /// The extension ended before it answered, or is not loaded.
    Ended {
        /// Which one.
        id: String,
        /// Why, if that is known.
        reason: Option<String>,
    },
    /// It could not be sent.
    Unsent {
        /// To which one.
        id: String,
        /// Why.
        reason: String,
    },
    /// It did not answer in time.
    Late(Duration),
}

impl CallFailure {
    /// What happened, and where, on one line.
    pub fn with_place(&self) -> String {
        match self {
            Self::Threw(ScriptError { file: Some(file), line: Some(line), message, .. }) => {
                format!("{message} ({file}:{line})")
            }
            other => other.to_string(),
        }
    }
}

impl std::fmt::Display for CallFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Threw(error) => f.write_str(&error.message),
            Self::Ended { id, reason: None } => write!(f, "{id} ended"),
            Self::Ended { id, reason: Some(reason) } => write!(f, "{id} ended: {reason}"),
            Self::Unsent { id, reason } => write!(f, "{id} could not be called: {reason}"),
            Self::Late(deadline) => write!(f, "no answer within {deadline:?}"),
        }
    }
}

impl Extensions {
    /// Calls into a load of an extension and waits for the reply. Dropping the future cancels the call.
    pub async fn call(
        &self,
        peer: &Peer,
        kind: CallKind,
        payload: String,
    ) -> Result<Value, CallFailure> {
        let Started { call, mut reply, promptness, incoming } =
            self.start_call(peer, kind, payload)?;
        let mut guard = CancelOnDrop { extensions: self, peer, call, armed: true };
        let mut looked = Looked::NotYet;
        if promptness.is_worth_a_look() {
            looked = look(&mut reply, incoming.as_deref());
            promptness.looked(!matches!(looked, Looked::NotYet));
        }
        let reply = match looked {
            Looked::Reply(reply) => Some(reply),
            Looked::Gone => None,
            Looked::NotYet => reply.await.ok(),
        };
        guard.armed = false;
        let value = match reply {
            Some(Ok(text)) => json_values::check(text.as_bytes())
                .map_err(|error| ScriptError::message(format!("the answer is too large: {error}")))
                .and_then(|()| {
                    serde_json::from_str(&text).map_err(|error| {
                        ScriptError::message(format!("the answer is not JSON: {error}"))
                    })
                }),
            Some(Err(error)) => Err(tenon_protocol::place::locate(error)),
            None => return Err(self.ended_call(peer)),
        };
        value.map_err(CallFailure::Threw)
    }

    /// The same with a deadline; a call that is late is cancelled.
    pub async fn call_within(
        &self,
        peer: &Peer,
        kind: CallKind,
        deadline: Duration,
        payload: String,
    ) -> Result<Value, CallFailure> {
        tokio::time::timeout(deadline, self.call(peer, kind, payload))
            .await
            .unwrap_or(Err(CallFailure::Late(deadline)))
    }

    fn start_call(
        &self,
        peer: &Peer,
        kind: CallKind,
        payload: String,
    ) -> Result<Started, CallFailure> {
        let mut state = self.state();
        let call = state.table.next_call();
        let Some(connection) = state.table.payload_mut(peer) else {
            drop(state);
            return Err(self.ended_call(peer));
        };
        // What happened before the call is heard of before the call.
        let events = connection.subscriber.take_batch(Urgency::BeforeCall);
        let events = events.map(|batch| ToIsolate::Events { batch });
        let messages = events.into_iter().chain([ToIsolate::Call { call, kind, payload }]);
        connection.isolate.send_all(messages.collect()).map_err(|unsent| CallFailure::Unsent {
            id: id_of(&peer.key),
            reason: unsent.to_string(),
        })?;
        let (sender, reply) = oneshot::channel();
        connection.calls.insert(call, sender);
        let (promptness, incoming) = (connection.promptness.clone(), connection.isolate.incoming());
        Ok(Started { call, reply, promptness, incoming })
    }

    /// Takes a reply; whoever waits for it has it.
    pub fn reply(&self, peer: &Peer, call: CallId, reply: Reply) {
        let (waiting, was_last) = self.update(|table| {
            let waiting = table.payload_mut(peer).and_then(|it| it.calls.remove(&call));
            (waiting, table.is_done(peer))
        });
        if let Some(waiting) = waiting {
            // The caller may have given up.
            let _ = waiting.send(reply);
        }
        // A load that was replaced ends with its last call.
        if was_last {
            self.announce();
        }
    }

    fn cancel(&self, peer: &Peer, call: CallId) {
        let was_last = self.update(|table| {
            if let Some(connection) = table.payload_mut(peer) {
                connection.calls.remove(&call);
                let reason = "the call was cancelled".into();
                // One that takes nothing does not need to hear of it.
                let _ = connection.isolate.send(ToIsolate::Cancel { call, reason });
            }
            table.is_done(peer)
        });
        if was_last {
            self.announce();
        }
    }

    fn ended_call(&self, peer: &Peer) -> CallFailure {
        let table = self.lock();
        let error = table.get(&peer.key).and_then(|it| it.info().last_error.as_ref());
        let reason = error.map(|error| {
            let what = &error.what;
            match (&what.file, what.line) {
                (Some(file), Some(line)) => {
                    let column = what.column.map(|column| format!(":{column}")).unwrap_or_default();
                    format!("{} at {file}:{line}{column}", what.message)
                }
                _ => what.message.clone(),
            }
        });
        CallFailure::Ended { id: id_of(&peer.key), reason }
    }
}

/// A call on its way.
struct Started {
    call: CallId,
    reply: oneshot::Receiver<Reply>,
    promptness: Arc<Promptness>,
    /// Where the reply comes in, if another process sends it.
    incoming: Option<Arc<Incoming>>,
}

/// What became of a reply.
enum Looked {
    Reply(Reply),
    /// None will come. The receiver must not be asked again.
    Gone,
    NotYet,
}

/// Looks for a reply that comes at once, and reads it itself: no other thread has to be woken for it.
fn look(reply: &mut oneshot::Receiver<Reply>, incoming: Option<&Incoming>) -> Looked {
    let start = Instant::now();
    loop {
        if let Some(incoming) = incoming {
            incoming.look();
        }
        match reply.try_recv() {
            Ok(value) => return Looked::Reply(value),
            Err(oneshot::error::TryRecvError::Closed) => return Looked::Gone,
            Err(oneshot::error::TryRecvError::Empty) if start.elapsed() >= LOOK => {
                return Looked::NotYet;
            }
            Err(oneshot::error::TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
}

/// Tells the handler when nobody waits for it any more.
struct CancelOnDrop<'a> {
    extensions: &'a Extensions,
    peer: &'a Peer,
    call: CallId,
    armed: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.extensions.cancel(self.peer, self.call);
        }
    }
}
