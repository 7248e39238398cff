//! What the session has to do because of a transition.

use std::time::Duration;

use tenon_protocol::message::LoadedFile;
use tenon_protocol::message::LogLevel;

use super::Key;
use super::Load;
use super::Peer;
use crate::events::Filter;

/// What follows from a transition, in this order.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "the session has to carry them out"]
pub struct Effects<L>(Vec<Effect<L>>);

impl<L> Effects<L> {
    pub fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn push(&mut self, effect: Effect<L>) {
        self.0.push(effect);
    }
}

impl<L> Default for Effects<L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<L, const N: usize> From<[Effect<L>; N]> for Effects<L> {
    fn from(effects: [Effect<L>; N]) -> Self {
        Self(effects.into())
    }
}

impl<L> FromIterator<Effect<L>> for Effects<L> {
    fn from_iter<I: IntoIterator<Item = Effect<L>>>(effects: I) -> Self {
        Self(effects.into_iter().collect())
    }
}

impl<L> Extend<Effect<L>> for Effects<L> {
    fn extend<I: IntoIterator<Item = Effect<L>>>(&mut self, effects: I) {
        self.0.extend(effects);
    }
}

impl<L> IntoIterator for Effects<L> {
    type Item = Effect<L>;
    type IntoIter = std::vec::IntoIter<Effect<L>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
impl<L> std::ops::Deref for Effects<L> {
    type Target = [Effect<L>];

    fn deref(&self) -> &[Effect<L>] {
        &self.0
    }
}

/// Something that the session has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect<L> {
    /// Add a line to an extension's log. Done under the lock, so that lines come in the order of the transitions.
    Log(Key, LogLevel, String),
    /// Deliver these events to a load, and no others. Done under the lock, for the same reason.
    Subscribe(Peer, Filter),
    /// Nothing of an extension is left. Done under the lock.
    Forgotten(Key),
    /// A load has ended, or nobody waits for it any more: let go of it.
    Dropped(Box<Load<L>>),
    /// A load that never served must stop; it is in the table no more.
    Stop(Box<Load<L>>),
    /// Let a load that was replaced finish its calls, then end it.
    Drain(Peer),
    /// Start an extension again, after a pause and if the plan still holds then.
    Restart { key: Key, after: Duration, plan: u64 },
    /// Find out whether a process listens on a port, and answer with [`super::Table::port_answered`].
    CheckPort { key: Key, pid: u32, port: u16, plan: u64 },
    /// If the load that serves has the port that the new one wants, end it first, and then try the new one again.
    MakeRoom { key: Key, port: u16, plan: u64 },
    /// Forget that an extension has failed, if this load of it runs well for long enough.
    ForgiveLater(Peer),
    /// Take down and watch which files a load was made from; these are outside of its folder.
    FilesRead { key: Key, outside: Vec<LoadedFile> },
    /// The canvases that an extension has open are served by nobody any more.
    CanvasesGone(Key),
    /// Wake whoever waits for a status to change.
    Changed,
    /// Say what extensions offer now.
    OffersChanged,
}

/// A line in which the host says what it did.
pub(super) fn mark<L>(key: &Key, text: &str) -> Effect<L> {
    Effect::Log(key.clone(), LogLevel::Info, format!("=== {text} ==="))
}
