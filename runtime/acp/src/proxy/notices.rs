//! Tells the client what happens in a session; in a task of its own, so that nobody waits for a slow client.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Instant;

use tenon_host::Session;
use tenon_host::events::Event;
use tenon_host::session::Tap;
use tenon_host::session::WeakSession;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use super::front::ClientFront;
use super::messages;
use super::messages::Rate;
use super::messages::Standing;
use super::messages::Visible;

/// How much waits to be told. More than a person reads of it is left out anyway.
pub const MAX_WAITING: usize = 1_000;

/// How many tool calls are remembered as told of. The two events about a denial come one soon after the other.
const MAX_TOLD_CALLS: usize = 1_000;

/// Something for the client.
enum Notice {
    /// A message for the person.
    Message(Visible),
    /// The list of commands is another one.
    Commands,
    /// Extensions came, went, or were loaded again.
    Extensions,
    /// Somebody waits until everything before this is told.
    Everything(oneshot::Sender<()>),
    /// Nothing more is told.
    End,
}

/// Queues what the client is told of a session, from its first event on.
#[derive(Clone)]
pub struct NoticeQueue {
    notices: mpsc::Sender<Notice>,
    /// There was no room for something.
    overrun: Arc<AtomicBool>,
}

/// The reading end of the queue.
pub struct QueuedNotices {
    notices: mpsc::Receiver<Notice>,
    overrun: Arc<AtomicBool>,
}

/// A queue, and its reading end.
pub fn queue() -> (NoticeQueue, QueuedNotices) {
    let (sender, notices) = mpsc::channel(MAX_WAITING);
    let overrun = Arc::new(AtomicBool::new(false));
    (NoticeQueue { notices: sender, overrun: overrun.clone() }, QueuedNotices { notices, overrun })
}

impl NoticeQueue {
    /// What the session's events are given to. It waits for nobody.
    pub fn tap(&self) -> Tap {
        let notices = self.clone();
        Arc::new(move |event: &Event| notices.add_event(event))
    }

    fn add_event(&self, event: &Event) {
        let notice = match &*event.kind {
            "commands.changed" => Notice::Commands,
            "session.extensions_loaded" => Notice::Extensions,
            _ => match Visible::of_event(event) {
                Some(message) => Notice::Message(message),
                None => return,
            },
        };
        if self.notices.try_send(notice).is_err() {
            self.overrun.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until the client has been told everything that was queued so far.
    pub async fn told(&self) {
        let (done, is_done) = oneshot::channel();
        if self.notices.send(Notice::Everything(done)).await.is_ok() {
            // A writer that has ended has nothing more to tell.
            let _ = is_done.await;
        }
    }

    /// Nothing more is told.
    pub async fn end(&self) {
        // A writer that has ended need not be told to.
        let _ = self.notices.send(Notice::End).await;
    }
}

/// Tells the client what is queued.
pub struct NoticeWriter {
    session: WeakSession,
    front: Arc<ClientFront>,
    rate: Rate,
    /// Calls of which a denial was told.
    told_calls: HashSet<String>,
    /// How the extensions fared when it was last told.
    standing: Vec<Standing>,
}

impl NoticeWriter {
    /// For a session that the client is about to hear of.
    pub fn new(session: &Session, front: Arc<ClientFront>) -> Self {
        Self {
            session: session.downgrade(),
            front,
            rate: Rate::default(),
            told_calls: HashSet::new(),
            standing: Standing::of(session),
        }
    }

    /// Tells what is queued, until the end.
    pub async fn run(mut self, mut queued: QueuedNotices) {
        while let Some(notice) = queued.notices.recv().await {
            match notice {
                Notice::Message(message) => self.tell(message).await,
                Notice::Commands => self.front.commands_changed().await,
                Notice::Extensions => self.extensions_changed().await,
                Notice::Everything(done) => {
                    if queued.overrun.swap(false, Ordering::Relaxed) {
                        // What was not queued may have been this.
                        self.extensions_changed().await;
                    }
                    if let Some(omission) = self.rate.omission() {
                        self.front.show(&omission).await;
                    }
                    // Whoever asked may have gone.
                    let _ = done.send(());
                }
                Notice::End => return,
            }
        }
    }

    async fn extensions_changed(&mut self) {
        self.front.commands_changed().await;
        let Some(session) = self.session.upgrade() else { return };
        let now = Standing::of(&session);
        drop(session);
        for message in messages::changes(&self.standing, &now) {
            self.tell(message).await;
        }
        self.standing = now;
    }

    async fn tell(&mut self, message: Visible) {
        if let Some(call) = &message.call {
            if self.told_calls.len() >= MAX_TOLD_CALLS {
                self.told_calls.clear();
            }
            if !self.told_calls.insert(call.clone()) {
                return;
            }
        }
        if self.rate.admits(Instant::now()) {
            if let Some(omission) = self.rate.omission() {
                self.front.show(&omission).await;
            }
            self.front.show(&message).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn what_the_client_is_told_of_is_heard_and_nothing_else() {
        let (notices, mut queued) = queue();
        let tap = notices.tap();
        tap(&Event::for_test("assistant.message", json!({ "content": "x" })));
        tap(&Event::for_test("session.info", json!({ "infoType": "x", "message": "hello" })));
        tap(&Event::for_test("commands.changed", json!({})));
        tap(&Event::for_test("session.extensions_loaded", json!({})));
        notices.end().await;
        let mut notices = Vec::new();
        while let Some(notice) = queued.notices.recv().await {
            notices.push(match notice {
                Notice::Message(message) => message.text,
                Notice::Commands => "commands".to_owned(),
                Notice::Extensions => "extensions".to_owned(),
                Notice::Everything(_) => "everything".to_owned(),
                Notice::End => break,
            });
        }
        assert_eq!(notices, ["hello", "commands", "extensions"]);
    }

    #[tokio::test]
    async fn more_than_may_wait_is_not_waited_for() {
        let (notices, queued) = queue();
        let tap = notices.tap();
        for _ in 0..MAX_WAITING {
            tap(&Event::for_test("commands.changed", json!({})));
        }
        assert!(!queued.overrun.load(Ordering::Relaxed));
        tap(&Event::for_test("commands.changed", json!({})));
        assert!(queued.overrun.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_teller_that_has_ended() {
        let (notices, queued) = queue();
        drop(queued);
        notices.told().await;
        notices.end().await;
    }
}
