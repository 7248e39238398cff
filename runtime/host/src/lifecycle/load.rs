//! One load of an extension: a generation.

use std::path::PathBuf;
use std::time::Instant;

use tenon_protocol::layers::Layers;

use super::CheckedOffers;
use crate::discovery::Scope;
use crate::events::Filter;
use crate::extension::Registration;

/// Scope, name and folder: names alone are not unique. Their order is the order of hooks.
pub type Key = (Scope, String, PathBuf);

/// `scope:name`.
pub fn id_of(key: &Key) -> String {
    format!("{}:{}", key.0, key.1)
}

/// Counts up whenever a load begins or ceases to serve.
pub type Epoch = u64;

/// Identifies one load of an extension. What it says after it was replaced is not the next one's word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    pub key: Key,
    pub generation: u32,
}

/// What the session has of a load: its isolate, and whoever waits for it. The state machine only keeps it.
pub trait Payload {
    /// Whether somebody waits for a reply.
    fn is_called(&self) -> bool;
}

/// How far a load has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// It has not joined.
    Starting,
    /// It has joined, and has not run as far as it can.
    Joined,
    /// It was ready.
    Running,
    /// It is told to stop, or about to be: a new call would be lost.
    Stopping,
}

/// One load of an extension.
#[derive(Debug, Clone, PartialEq)]
pub struct Load<L> {
    pub(super) generation: u32,
    pub(super) payload: L,
    pub(super) stage: Stage,
    /// Its process, once that exists.
    pub(super) pid: Option<u32>,
    /// What the kernel enforces of its grant, once that is known.
    pub(super) layers: Option<Layers>,
    /// How many are about to call it.
    pub(super) pins: usize,
    /// What it registered.
    pub(super) offers: CheckedOffers,
    /// The events it wants. Until it serves it gets none: the load before it still does.
    pub(super) wanted: Filter,
    /// SHA-256 of its entry file when it was started.
    pub(super) hash: Option<String>,
    /// When it was ready.
    pub(super) ready_at: Option<Instant>,
    /// When it began to serve, and when it ceased to.
    pub(super) serves: (Epoch, Option<Epoch>),
}

impl<L> Load<L> {
    pub(super) fn new(generation: u32, hash: Option<String>, payload: L) -> Self {
        Self {
            generation,
            payload,
            stage: Stage::Starting,
            pid: None,
            layers: None,
            pins: 0,
            offers: CheckedOffers::default(),
            wanted: Filter::default(),
            hash,
            ready_at: None,
            serves: (0, None),
        }
    }

    pub fn payload(&self) -> &L {
        &self.payload
    }

    pub fn into_payload(self) -> L {
        self.payload
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// What it registered.
    pub fn offers(&self) -> &Registration {
        self.offers.registration()
    }

    /// Whether it served at the given epoch.
    pub(super) fn served(&self, epoch: Epoch) -> bool {
        let (from, until) = self.serves;
        from <= epoch && until.is_none_or(|until| epoch < until)
    }

    /// Whether it was replaced or taken away.
    pub(super) fn was_replaced(&self) -> bool {
        self.serves.1.is_some()
    }

    /// Whether it has a hook that a tool call comes past more than once.
    pub(super) fn has_tool_hooks(&self) -> bool {
        self.offers().hooks.iter().any(|hook| hook.name.contains("ToolUse"))
    }
}

impl<L: Payload> Load<L> {
    /// Whether somebody waits for a reply.
    pub(super) fn is_called(&self) -> bool {
        self.payload.is_called()
    }

    /// Whether somebody waits for it, or is about to.
    pub fn is_busy(&self) -> bool {
        self.pins > 0 || self.is_called()
    }
}
