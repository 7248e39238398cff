//! Requests that somebody has yet to answer, by id.
//!
//! Every question of the session is announced as an event with a `requestId`. Whoever saw the event may
//! answer through the session's `rpc`; the first answer counts. What an extension's handler was asked can be answered only
//! by an extension that may do at least as much.

use parking_lot::Mutex;
use std::collections::HashMap;

use serde_json::Value;
use serde_json::json;
use tokio::sync::oneshot;

use crate::events::Bus;
use crate::extensions::Key;

/// What a request is about; an answer of another kind does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Permission,
    UserInput,
    Elicitation,
    ExitPlanMode,
    AutoModeSwitch,
    Command,
    Tool,
    /// Answered by the person alone; there is no method for it.
    Secrets,
}

/// The requests that wait.
#[derive(Default)]
pub struct Pending(Mutex<HashMap<String, Request>>);

/// A request that somebody has yet to answer.
struct Request {
    kind: Kind,
    /// The extension whose handler is asked, if one is: who may do less must not answer in its place.
    owner: Option<Key>,
    sender: oneshot::Sender<Value>,
}

/// A request that waits. Dropping it ends the waiting, and says so if it was not completed.
pub struct Waiting<'a> {
    pending: &'a Pending,
    /// Identifies it in events.
    pub id: String,
    answer: oneshot::Receiver<Value>,
    bus: &'a Bus,
    /// The event that says it is over; none when it has been said.
    completed: Option<String>,
}

impl Pending {
    /// Opens a request; `completed` is the event that says it is over.
    pub fn open<'a>(&'a self, kind: Kind, bus: &'a Bus, completed: &str) -> Waiting<'a> {
        self.open_of(None, kind, bus, completed)
    }

    /// The same for a request to an extension's handler.
    pub fn open_of<'a>(
        &'a self,
        owner: Option<&Key>,
        kind: Kind,
        bus: &'a Bus,
        completed: &str,
    ) -> Waiting<'a> {
        let id = crate::ids::unique();
        let (sender, answer) = oneshot::channel();
        self.lock().insert(id.clone(), Request { kind, owner: owner.cloned(), sender });
        Waiting { pending: self, id, answer, bus, completed: Some(completed.to_owned()) }
    }

    /// Answers a request; false if there is none of that kind.
    pub fn answer(&self, id: &str, kind: Kind, answer: Value) -> bool {
        let mut waiting = self.lock();
        if waiting.get(id).is_none_or(|request| request.kind != kind) {
            return false;
        }
        waiting.remove(id).is_some_and(|request| request.sender.send(answer).is_ok())
    }

    /// The extension whose handler a request is for.
    pub fn owner(&self, id: &str) -> Option<Key> {
        self.lock().get(id)?.owner.clone()
    }

    fn lock(&self) -> parking_lot::MutexGuard<'_, HashMap<String, Request>> {
        self.0.lock()
    }
}

impl Waiting<'_> {
    /// Says that it is over, and how.
    pub fn complete(mut self, data: Value) {
        self.say(data);
    }

    fn say(&mut self, data: Value) {
        let Some(event) = self.completed.take() else { return };
        // Who was permitted what belongs into the record; the rest is of the moment.
        if event.starts_with("permission.") || event.starts_with("external_tool.") {
            self.bus.emit(&event, data);
        } else {
            self.bus.emit_ephemeral(&event, data);
        }
    }

    /// Waits for an answer from outside, which may never come.
    pub async fn answered(&mut self) -> Value {
        match (&mut self.answer).await {
            Ok(answer) => answer,
            Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.pending.lock().remove(&self.id);
        let cancelled = json!({ "requestId": self.id, "cancelled": true });
        self.say(cancelled);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::Journal;

    #[tokio::test]
    async fn the_first_answer_of_the_right_kind_counts() {
        let pending = Pending::default();
        let bus = Bus::new(Journal::in_memory());
        let mut waiting = pending.open(Kind::Permission, &bus, "permission.completed");
        let id = waiting.id.clone();
        assert!(!pending.answer(&id, Kind::Command, json!(0)));
        assert!(pending.answer(&id, Kind::Permission, json!(1)));
        assert!(!pending.answer(&id, Kind::Permission, json!(2)));
        assert_eq!(waiting.answered().await, json!(1));
        drop(waiting);
        assert_eq!(bus.recorded().unwrap()[0]["data"]["cancelled"], true);
    }
}
