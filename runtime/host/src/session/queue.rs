//! Prompts that wait for their turn.

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use std::collections::VecDeque;

use serde_json::Value;
use serde_json::json;
use tokio::sync::Notify;
use tokio::sync::oneshot;
use tokio::sync::watch;

use super::Session;
use super::message::Delivery;
use super::message::MAX_QUEUED_PROMPTS;
use super::message::MAX_UNATTENDED_PROMPTS;
use super::message::Message;
use super::message::SendError;
use super::message::TurnEnd;
use crate::front::AgentPrompt;
use crate::front::StopReason;

/// A message that waits.
#[derive(Debug)]
pub(super) struct Queued {
    pub id: String,
    pub message: Message,
    /// How it came to its turn: `idle`, `steering` or `queued`.
    pub delivery: &'static str,
    /// What became of it in the hooks, if they have run.
    pub prepared: Option<AgentPrompt>,
    /// Who wants to know what became of it. Dropped unused if it is forgotten.
    pub done: Option<oneshot::Sender<TurnEnd>>,
}

/// What waits, and whether something runs.
pub(super) struct Queue {
    state: Mutex<QueueState>,
    busy: watch::Sender<bool>,
    /// Rung when a message has been told to the running turn, or could not be.
    steered: Notify,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Queued>,
    running: bool,
    /// Messages on their way into the running turn.
    steering: usize,
    /// Messages of extensions that did not have to wait any more, since the last message of the person.
    unattended: usize,
    closed: bool,
}

impl QueueState {
    /// Messages of extensions since the last one of the person, also those that wait. What is forgotten while it
    /// waits does not count.
    fn unattended(&self) -> usize {
        self.unattended + self.waiting.iter().filter(|queued| queued.is_unattended()).count()
    }

    /// A message does not have to wait any more.
    fn leaves(&mut self, queued: &Queued) {
        self.unattended += usize::from(queued.is_unattended());
    }
}

impl Queued {
    /// Whether it is one more message of an extension. One that comes back, because the turn that it was for had
    /// ended, is not.
    fn is_unattended(&self) -> bool {
        self.message.source.is_some() && self.prepared.is_none()
    }
}

/// What there is to do.
pub(super) enum Next {
    /// A message, and the aborts before it.
    Message(Box<Queued>, u64),
    /// A message that is on its way into the turn may come back; wait for it.
    Steering,
    /// Nothing.
    Idle,
}

impl Default for Queue {
    fn default() -> Self {
        Self { state: Mutex::default(), busy: watch::Sender::new(false), steered: Notify::new() }
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock()
    }

    /// Adds a message; true if somebody must begin to work. `added` is called before the session can be idle
    /// again, so that whoever waits for that can tell which time it was.
    fn push(&self, mut queued: Queued, added: impl FnOnce()) -> Result<bool, SendError> {
        let mut state = self.lock();
        if state.closed {
            return Err(SendError::Ended);
        }
        if state.waiting.len() >= MAX_QUEUED_PROMPTS {
            return Err(SendError::Full);
        }
        if queued.message.source.is_none() {
            state.unattended = 0;
        } else if state.unattended() >= MAX_UNATTENDED_PROMPTS {
            return Err(SendError::Unattended);
        }
        if !state.running && state.waiting.is_empty() {
            queued.delivery = "idle";
        }
        match queued.message.delivery {
            Delivery::Enqueue => state.waiting.push_back(queued),
            Delivery::Immediate => {
                queued.delivery = if state.running { "steering" } else { queued.delivery };
                // Behind others that are in a hurry, before those that are not.
                let hurried = |queued: &Queued| queued.message.delivery == Delivery::Immediate;
                let place = state.waiting.iter().take_while(|queued| hurried(queued)).count();
                state.waiting.insert(place, queued);
            }
        }
        added();
        let begin = !std::mem::replace(&mut state.running, true);
        self.busy.send_replace(true);
        Ok(begin)
    }

    /// What to do next. If nothing, `idle` says so before anything else can be sent. Aborts are counted
    /// under the same lock, so that none is lost between taking a message and looking for them.
    pub fn next(&self, aborts: &watch::Sender<u64>, idle: impl FnOnce()) -> Next {
        let mut state = self.lock();
        if let Some(queued) = state.waiting.pop_front() {
            state.leaves(&queued);
            return Next::Message(Box::new(queued), *aborts.borrow());
        }
        if state.steering > 0 {
            return Next::Steering;
        }
        state.running = false;
        idle();
        self.busy.send_replace(false);
        Next::Idle
    }

    /// Waits until a message has arrived in the turn, or has not.
    pub async fn steered(&self) {
        self.steered.notified().await;
    }

    /// If something runs: forgets what waits, and has `abort` stop what runs.
    pub fn abort(&self, abort: impl FnOnce()) {
        let mut state = self.lock();
        if state.running {
            state.waiting.clear();
            abort();
        }
    }

    /// Takes a message out of the queue to tell it to the running turn, if it still waits.
    fn take(&self, id: &str) -> Option<(Queued, Steering<'_>)> {
        let mut state = self.lock();
        let place = state.waiting.iter().position(|queued| queued.id == id)?;
        let queued = state.waiting.remove(place)?;
        state.leaves(&queued);
        state.steering += 1;
        Some((queued, Steering(self)))
    }

    /// Puts a message first; unless the session has ended.
    fn put_first(&self, queued: Queued) {
        let mut state = self.lock();
        if !state.closed {
            state.waiting.push_front(queued);
        }
    }

    /// Forgets what waits; how many that was.
    pub fn clear(&self) -> usize {
        self.lock().waiting.drain(..).count()
    }

    /// Takes no more; true if something is running.
    pub fn close(&self) -> bool {
        let mut state = self.lock();
        state.closed = true;
        state.waiting.clear();
        state.running
    }

    /// Whether something runs.
    pub fn is_busy(&self) -> bool {
        self.lock().running
    }

    /// What waits, for those who want to look.
    pub fn items(&self) -> Vec<Value> {
        let state = self.lock();
        let item = |queued: &Queued| {
            let message = &queued.message;
            json!({
                "id": queued.id,
                "messageId": queued.id,
                "kind": "message",
                "displayText": message.display_prompt.as_ref().unwrap_or(&message.prompt),
                "agentMode": message.agent_mode.as_deref().unwrap_or("interactive"),
            })
        };
        state.waiting.iter().map(item).collect()
    }
}

impl Session {
    /// Queues a message for the agent; returns its id.
    pub fn send(&self, message: Message) -> Result<String, SendError> {
        self.enqueue(message, None)
    }

    /// Queues a message for the agent, and waits until the turn that it leads to has ended.
    pub async fn send_and_wait(&self, message: Message) -> Result<TurnEnd, SendError> {
        let (done, ended) = oneshot::channel();
        self.enqueue(message, Some(done))?;
        // Whoever aborts the session forgets what waits.
        Ok(ended.await.unwrap_or(TurnEnd::Cancelled))
    }

    fn enqueue(
        &self,
        message: Message,
        done: Option<oneshot::Sender<TurnEnd>>,
    ) -> Result<String, SendError> {
        let Some(agent) = &self.0.options.agent else { return Err(SendError::NoAgent) };
        let id = crate::ids::unique();
        let steer = message.delivery == Delivery::Immediate && agent.can_steer();
        let queued = Queued { id: id.clone(), message, delivery: "queued", prepared: None, done };
        let added = || {
            self.emit_ephemeral("pending_messages.modified", json!({ "messageId": id }));
        };
        let begin = self.0.queue.push(queued, added)?;
        if begin {
            self.0.runtime.spawn(self.clone().work());
        } else if steer {
            self.0.runtime.spawn(self.clone().steer(id.clone()));
        }
        Ok(id)
    }

    /// Whether a prompt is worked on, or waits.
    pub fn is_busy(&self) -> bool {
        self.0.queue.is_busy()
    }

    /// Waits until no prompt is worked on and none waits.
    pub async fn idle(&self) {
        // The sender lives as long as we do.
        let _ = self.0.queue.busy.subscribe().wait_for(|busy| !busy).await;
    }

    /// Tells the running turn; if it has ended meanwhile, the message comes next.
    async fn steer(self, id: String) {
        let Some(agent) = &self.0.options.agent else { return };
        let aborts = *self.0.aborts.borrow();
        let Some((mut queued, _on_its_way)) = self.0.queue.take(&id) else { return };
        let told = async {
            let Ok(prompt) = self.prepare(&queued).await else { return Told::Blocked };
            if agent.steer(&prompt).await { Told::Yes } else { Told::TooLate(prompt) }
        };
        let told = tokio::select! {
            biased;
            () = self.aborted_after(aborts) => Told::Blocked,
            told = told => told,
        };
        match told {
            Told::Yes => {
                self.emit_ephemeral("pending_messages.modified", json!({}));
                if let Some(done) = queued.done.take() {
                    let _ = done.send(TurnEnd::Ended(StopReason::end_turn().into()));
                }
            }
            Told::TooLate(prompt) => {
                queued.prepared = Some(prompt);
                self.0.queue.put_first(queued);
            }
            Told::Blocked => {}
        }
    }
}

/// What became of a message for the running turn.
enum Told {
    Yes,
    TooLate(AgentPrompt),
    /// A hook blocked it, or the turn was aborted.
    Blocked,
}

/// A message is on its way into the running turn: the session is not idle.
struct Steering<'a>(&'a Queue);

impl Drop for Steering<'_> {
    fn drop(&mut self) {
        self.0.lock().steering -= 1;
        self.0.steered.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn send(queue: &Queue, source: Option<&str>) -> Result<bool, SendError> {
        let source = source.map(str::to_owned);
        let message = Message { source, ..Message::new("go on") };
        let id = crate::ids::unique();
        let queued = Queued { id, message, delivery: "queued", prepared: None, done: None };
        queue.push(queued, || {})
    }

    /// Takes the next message, if there is one.
    fn work(queue: &Queue) -> Option<Queued> {
        match queue.next(&watch::Sender::new(0), || {}) {
            Next::Message(queued, _) => Some(*queued),
            Next::Steering | Next::Idle => None,
        }
    }

    const EXTENSION: Option<&str> = Some("agent-project:loop");

    #[test]
    fn extensions_that_answer_themselves_come_to_an_end() {
        let queue = Queue::default();
        for _ in 0..2 {
            send(&queue, None).unwrap();
            assert!(work(&queue).is_some());
            for _ in 0..MAX_UNATTENDED_PROMPTS {
                send(&queue, EXTENSION).unwrap();
                assert!(work(&queue).is_some() && work(&queue).is_none());
            }
            assert!(matches!(send(&queue, EXTENSION), Err(SendError::Unattended)));
        }
    }

    #[test]
    fn what_waits_counts_until_it_is_forgotten() {
        let queue = Queue::default();
        send(&queue, EXTENSION).unwrap();
        assert!(work(&queue).is_some());
        for _ in 1..MAX_UNATTENDED_PROMPTS {
            send(&queue, EXTENSION).unwrap();
        }
        assert!(matches!(send(&queue, EXTENSION), Err(SendError::Unattended)));
        assert_eq!(queue.clear(), MAX_UNATTENDED_PROMPTS - 1);
        send(&queue, EXTENSION).unwrap();
    }

    #[test]
    fn a_message_that_came_too_late_for_a_turn_counts_once() {
        let queue = Queue::default();
        send(&queue, EXTENSION).unwrap();
        let id = queue.lock().waiting[0].id.clone();
        let (mut queued, on_its_way) = queue.take(&id).unwrap();
        queued.prepared = Some(AgentPrompt::default());
        queue.put_first(queued);
        drop(on_its_way);
        assert!(work(&queue).is_some());
        assert_eq!(queue.lock().unattended(), 1);
    }
}
