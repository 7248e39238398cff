//! What the client is told about one session, in order.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use serde_json::Value;
use serde_json::json;
use tokio::sync::Mutex;

use super::ids;
use crate::rpc::Connection;

/// How much is kept for a client that does not know the session yet. Agents send a handful of updates then; one
/// that sends more is passed on at once, because nothing may be lost here.
pub const MAX_HELD: usize = 1_000;

/// A notification that waits: its method and parameters.
type Waiting = (String, Value);

/// Updates of one session on their way to the client.
pub struct UpdateSender {
    client: Connection,
    /// What the client calls the session.
    id: String,
    /// What waits until the client knows the session; `None` once it does.
    held: Mutex<Option<VecDeque<Waiting>>>,
    /// Nothing waits any more; saves taking the lock for every update.
    free: AtomicBool,
}

impl UpdateSender {
    /// `hold`: the client does not know the session yet, and would not know what to do with its updates.
    pub fn new(client: Connection, id: String, hold: bool) -> Self {
        let held = Mutex::new(hold.then(VecDeque::new));
        Self { client, id, held, free: AtomicBool::new(!hold) }
    }

    /// What the client calls the session.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Tells the client an update; waits while the client does not read.
    pub async fn say(&self, update: Value) {
        self.pass(json!({ "update": update })).await;
    }

    /// Tells the client an update with everything around it.
    pub async fn pass(&self, params: Value) {
        self.notify("session/update", params).await;
    }

    /// Tells the client something about the session.
    pub async fn notify(&self, method: &str, mut params: Value) {
        ids::set_session(&mut params, &self.id);
        if !self.free.load(Ordering::Acquire) {
            let mut held = self.held.lock().await;
            if let Some(waiting) = &mut *held {
                waiting.push_back((method.to_owned(), params));
                if waiting.len() > MAX_HELD {
                    self.flush(&mut held).await;
                }
                return;
            }
        }
        // A client that is gone misses nothing.
        let _ = self.client.notify(method, params).await;
    }

    /// The client knows the session now.
    pub async fn release(&self) {
        if !self.free.load(Ordering::Acquire) {
            self.flush(&mut *self.held.lock().await).await;
        }
    }

    /// What is said meanwhile waits for the lock, and so comes after what is said here.
    async fn flush(&self, held: &mut Option<VecDeque<Waiting>>) {
        while let Some((method, params)) = held.as_mut().and_then(VecDeque::pop_front) {
            let _ = self.client.notify(&method, params).await;
        }
        *held = None;
        self.free.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use tokio::sync::mpsc;

    use super::*;
    use crate::rpc::Handler;
    use crate::rpc::RpcError;

    /// Keeps what it hears.
    struct Recorder(mpsc::UnboundedSender<(String, Value)>);

    #[async_trait]
    impl Handler for Recorder {
        async fn notification(&self, method: String, params: Value) {
            let _ = self.0.send((method, params));
        }

        async fn request(&self, method: String, _params: Value) -> Result<Value, RpcError> {
            Err(RpcError::method_not_found(&method))
        }
    }

    /// A connection, and what its other side hears; the other side itself must be kept.
    fn client() -> (Connection, mpsc::UnboundedReceiver<(String, Value)>, Connection) {
        let (ours, theirs) = tokio::io::duplex(1024);
        let (our_reader, our_writer) = tokio::io::split(ours);
        let (their_reader, their_writer) = tokio::io::split(theirs);
        let (sender, queued) = mpsc::unbounded_channel();
        let (deaf, _) = mpsc::unbounded_channel();
        let other = Connection::new(their_reader, their_writer, Arc::new(Recorder(sender)));
        let client = Connection::new(our_reader, our_writer, Arc::new(Recorder(deaf)));
        (client, queued, other)
    }

    fn number(queued: &(String, Value)) -> u64 {
        assert_eq!(queued.1["sessionId"], "ours");
        queued.1["update"]["n"].as_u64().unwrap()
    }

    #[tokio::test]
    async fn updates_carry_the_name_that_the_client_knows() {
        let (client, mut queued, _other) = client();
        let updates = UpdateSender::new(client, "ours".to_owned(), false);
        updates
            .pass(json!({ "sessionId": "native", "update": { "n": 1 }, "_meta": { "x": 2 } }))
            .await;
        let (method, params) = queued.recv().await.unwrap();
        assert_eq!(method, "session/update");
        assert_eq!(
            params,
            json!({ "sessionId": "ours", "update": { "n": 1 }, "_meta": { "x": 2 } })
        );
    }

    #[tokio::test]
    async fn what_is_said_of_a_session_nobody_knows_waits_and_keeps_its_order() {
        let (client, mut queued, _other) = client();
        let updates = UpdateSender::new(client.clone(), "ours".to_owned(), true);
        for n in 0..3 {
            updates.say(json!({ "n": n })).await;
        }
        client.notify("answer", json!({})).await.unwrap();
        updates.release().await;
        updates.say(json!({ "n": 3 })).await;
        assert_eq!(queued.recv().await.unwrap().0, "answer");
        for n in 0..4 {
            assert_eq!(number(&queued.recv().await.unwrap()), n);
        }
    }

    #[tokio::test]
    async fn more_than_is_kept_is_said_at_once_and_nothing_is_lost() {
        let (client, mut queued, _other) = client();
        let updates = UpdateSender::new(client, "ours".to_owned(), true);
        for n in 0..=MAX_HELD {
            updates.say(json!({ "n": n })).await;
        }
        for n in 0..=MAX_HELD {
            assert_eq!(number(&queued.recv().await.unwrap()), n as u64);
        }
    }
}
