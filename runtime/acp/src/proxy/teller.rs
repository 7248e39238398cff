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
enum Word {
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

/// Hears what happens in a session, from its first event on.
#[derive(Clone)]
pub struct Ear {
    words: mpsc::Sender<Word>,
    /// There was no room for something.
    overrun: Arc<AtomicBool>,
}

/// What was heard and not told yet.
pub struct Heard {
    words: mpsc::Receiver<Word>,
    overrun: Arc<AtomicBool>,
}

/// An ear, and what it hears.
pub fn listen() -> (Ear, Heard) {
    let (sender, words) = mpsc::channel(MAX_WAITING);
    let overrun = Arc::new(AtomicBool::new(false));
    (Ear { words: sender, overrun: overrun.clone() }, Heard { words, overrun })
}

impl Ear {
    /// What the session's events are given to. It waits for nobody.
    pub fn tap(&self) -> Tap {
        let ear = self.clone();
        Arc::new(move |event: &Event| ear.hear(event))
    }

    fn hear(&self, event: &Event) {
        let word = match &*event.kind {
            "commands.changed" => Word::Commands,
            "session.extensions_loaded" => Word::Extensions,
            _ => match Visible::of_event(event) {
                Some(message) => Word::Message(message),
                None => return,
            },
        };
        if self.words.try_send(word).is_err() {
            self.overrun.store(true, Ordering::Relaxed);
        }
    }

    /// Waits until the client has been told everything that was heard so far.
    pub async fn told(&self) {
        let (done, is_done) = oneshot::channel();
        if self.words.send(Word::Everything(done)).await.is_ok() {
            // A teller that has ended has nothing more to tell.
            let _ = is_done.await;
        }
    }

    /// Nothing more is told.
    pub async fn end(&self) {
        // A teller that has ended need not be told to.
        let _ = self.words.send(Word::End).await;
    }
}

/// Tells the client.
pub struct Teller {
    session: WeakSession,
    front: Arc<ClientFront>,
    rate: Rate,
    /// Calls of which a denial was told.
    told_calls: HashSet<String>,
    /// How the extensions fared when it was last told.
    standing: Vec<Standing>,
}

impl Teller {
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

    /// Tells what is heard, until the end.
    pub async fn run(mut self, mut heard: Heard) {
        while let Some(word) = heard.words.recv().await {
            match word {
                Word::Message(message) => self.tell(message).await,
                Word::Commands => self.front.commands_changed().await,
                Word::Extensions => self.extensions_changed().await,
                Word::Everything(done) => {
                    if heard.overrun.swap(false, Ordering::Relaxed) {
                        // What was not heard may have been this.
                        self.extensions_changed().await;
                    }
                    if let Some(omission) = self.rate.omission() {
                        self.front.show(&omission).await;
                    }
                    // Whoever asked may have gone.
                    let _ = done.send(());
                }
                Word::End => return,
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
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    fn event(kind: &str, data: Value) -> Event {
        Event {
            kind: kind.to_owned(),
            data,
            id: "1".to_owned(),
            timestamp: String::new(),
            parent_id: None,
            ephemeral: false,
        }
    }

    #[tokio::test]
    async fn what_the_client_is_told_of_is_heard_and_nothing_else() {
        let (ear, mut heard) = listen();
        let tap = ear.tap();
        tap(&event("assistant.message", json!({ "content": "x" })));
        tap(&event("session.info", json!({ "infoType": "x", "message": "hello" })));
        tap(&event("commands.changed", json!({})));
        tap(&event("session.extensions_loaded", json!({})));
        ear.end().await;
        let mut words = Vec::new();
        while let Some(word) = heard.words.recv().await {
            words.push(match word {
                Word::Message(message) => message.text,
                Word::Commands => "commands".to_owned(),
                Word::Extensions => "extensions".to_owned(),
                Word::Everything(_) => "everything".to_owned(),
                Word::End => break,
            });
        }
        assert_eq!(words, ["hello", "commands", "extensions"]);
    }

    #[tokio::test]
    async fn more_than_may_wait_is_not_waited_for() {
        let (ear, heard) = listen();
        let tap = ear.tap();
        for _ in 0..MAX_WAITING {
            tap(&event("commands.changed", json!({})));
        }
        assert!(!heard.overrun.load(Ordering::Relaxed));
        tap(&event("commands.changed", json!({})));
        assert!(heard.overrun.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_teller_that_has_ended() {
        let (ear, heard) = listen();
        drop(heard);
        ear.told().await;
        ear.end().await;
    }
}
