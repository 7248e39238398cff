//! One load of an extension: a generation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tenon_protocol::layers::Layers;
use tenon_protocol::message::CallId;
use tokio::sync::oneshot;
use tokio::sync::watch;

use super::Epoch;
use super::Key;
use super::calls::Reply;
use super::promptness::Promptness;
use crate::events::Filter;
use crate::events::Subscriber;
use crate::extension::Registration;
use crate::isolates::Handle;

/// Identifies one load of an extension. What it says after it was replaced is not the next one's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub key: Key,
    pub generation: u32,
}

/// One load of an extension.
pub struct Load {
    pub generation: u32,
    pub isolate: Handle,
    /// Its process, once that exists.
    pub pid: Option<u32>,
    /// What the kernel enforces of its grant, once that is known.
    pub layers: Option<Layers>,
    pub calls: HashMap<CallId, oneshot::Sender<Reply>>,
    /// Whether its replies have come at once lately.
    pub promptness: Arc<Promptness>,
    /// How many are about to call it.
    pub pins: usize,
    /// It is told to stop, or about to be: a new call would be lost.
    pub is_stopping: bool,
    /// What it registered.
    pub offers: Registration,
    /// The events it wants. Until it serves it gets none: the load before it still does.
    pub wanted: Filter,
    pub subscriber: Arc<Subscriber>,
    /// SHA-256 of its entry file when it was started.
    pub hash: Option<String>,
    /// When it was ready.
    pub ready_at: Option<Instant>,
    /// When it began to serve, and when it ceased to.
    pub serves: (Epoch, Option<Epoch>),
    /// Set when its isolate has said its last word.
    ended: watch::Sender<bool>,
}

impl Load {
    pub fn new(
        generation: u32,
        isolate: Handle,
        subscriber: Arc<Subscriber>,
        hash: Option<String>,
    ) -> Self {
        Self {
            generation,
            isolate,
            pid: None,
            layers: None,
            calls: HashMap::new(),
            promptness: Arc::default(),
            pins: 0,
            is_stopping: false,
            offers: Registration::default(),
            wanted: Filter::default(),
            subscriber,
            hash,
            ready_at: None,
            serves: (0, None),
            ended: watch::Sender::new(false),
        }
    }

    /// Whether it served at the given epoch.
    pub fn served(&self, epoch: Epoch) -> bool {
        let (from, until) = self.serves;
        from <= epoch && until.is_none_or(|until| epoch < until)
    }

    /// Whether somebody waits for it, or is about to.
    pub fn is_busy(&self) -> bool {
        self.pins > 0 || !self.calls.is_empty()
    }

    /// Waits for its isolate's last word.
    pub fn last_word(&self) -> watch::Receiver<bool> {
        self.ended.subscribe()
    }

    /// Its isolate has said its last word.
    pub fn say_last_word(&self) {
        self.ended.send_replace(true);
    }

    /// Changes which events it wants; it gets them if it serves.
    pub fn subscribe(&mut self, serves: bool, change: impl FnOnce(&mut Filter)) {
        change(&mut self.wanted);
        if serves {
            let wanted = self.wanted.clone();
            self.subscriber.change(|filter| *filter = wanted);
        }
    }

    /// Whether it has a hook that a tool call comes past more than once.
    pub fn has_tool_hooks(&self) -> bool {
        self.offers.hooks.iter().any(|hook| hook.name.contains("ToolUse"))
    }
}
