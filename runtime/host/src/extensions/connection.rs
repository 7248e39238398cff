//! What the session has of one load of an extension: its isolate, its place on the bus, and whoever waits for it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use tenon_protocol::message::CallId;
use tokio::sync::oneshot;
use tokio::sync::watch;

use super::calls::Reply;
use super::promptness::Promptness;
use crate::events::Subscriber;
use crate::isolates::Handle;
use crate::lifecycle::Payload;

/// The connection to one load of an extension. Dropping it ends the isolate without ceremony.
pub struct Connection {
    pub isolate: Handle,
    pub subscriber: Arc<Subscriber>,
    /// The extension's folder, with links followed when the load was started.
    pub folder: PathBuf,
    pub(super) calls: HashMap<CallId, oneshot::Sender<Reply>>,
    /// Whether its replies have come at once lately.
    pub(super) promptness: Arc<Promptness>,
    /// Set when its isolate has said its last word.
    ended: watch::Sender<bool>,
}

impl Payload for Connection {
    fn is_called(&self) -> bool {
        !self.calls.is_empty()
    }
}

impl Connection {
    pub fn new(isolate: Handle, subscriber: Arc<Subscriber>, folder: PathBuf) -> Self {
        Self {
            isolate,
            subscriber,
            folder,
            calls: HashMap::new(),
            promptness: Arc::default(),
            ended: watch::Sender::new(false),
        }
    }

    /// The calls that wait for a reply.
    pub fn calls(&self) -> Vec<CallId> {
        self.calls.keys().copied().collect()
    }

    /// Waits for its isolate's last word.
    pub fn last_word(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Its isolate has said its last word, or nobody listens to it any more.
    pub fn say_last_word(&self) {
        self.ended.send_replace(true);
    }
}
