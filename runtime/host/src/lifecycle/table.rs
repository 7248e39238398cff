//! All extensions of a session, the names they own, and who looks at which of them.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::time::Duration;

use tenon_protocol::message::CallId;

use super::Effect;
use super::Effects;
use super::Epoch;
use super::Extension;
use super::Key;
use super::Load;
use super::Payload;
use super::Peer;
use super::Stage;
use super::names::Names;
use crate::schema::Schema;

/// All extensions of a session. Its fields are changed in this module and in the others of the state machine alone.
#[derive(Debug, Clone, PartialEq)]
pub struct Table<L> {
    pub(super) extensions: BTreeMap<Key, Extension<L>>,
    pub(super) names: Names,
    pub(super) epoch: Epoch,
    /// How many look at which epoch.
    pub(super) views: BTreeMap<Epoch, usize>,
    calls: CallId,
}

impl<L> Default for Table<L> {
    fn default() -> Self {
        Self {
            extensions: BTreeMap::new(),
            names: Names::default(),
            epoch: 0,
            views: BTreeMap::new(),
            calls: 0,
        }
    }
}

/// Where a load is on its way through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    Current,
    Next,
    Draining(usize),
}

impl<L> Table<L> {
    pub fn get(&self, key: &Key) -> Option<&Extension<L>> {
        self.extensions.get(key)
    }

    /// Every extension, in the order of hooks.
    pub fn iter(&self) -> impl Iterator<Item = (&Key, &Extension<L>)> {
        self.extensions.iter()
    }

    /// The same without their keys.
    pub fn values(&self) -> impl Iterator<Item = &Extension<L>> {
        self.extensions.values()
    }

    /// The load that a message came from, if it is still there.
    pub fn load(&self, peer: &Peer) -> Option<&Load<L>> {
        let mut loads = self.extensions.get(&peer.key)?.loads();
        loads.find(|load| load.generation == peer.generation)
    }

    /// The load of an extension that serves.
    pub fn current(&self, key: &Key) -> Option<&Load<L>> {
        self.extensions.get(key)?.current.as_ref()
    }

    /// The same, by its name.
    pub fn current_peer(&self, key: &Key) -> Option<Peer> {
        let generation = self.current(key)?.generation;
        Some(Peer { key: key.clone(), generation })
    }

    /// What the session has of a load.
    pub fn payload_mut(&mut self, peer: &Peer) -> Option<&mut L> {
        self.load_mut(peer).map(|load| &mut load.payload)
    }

    /// Whether a plan was not overtaken.
    pub fn is_planned(&self, key: &Key, plan: u64) -> bool {
        self.extensions.get(key).is_some_and(|extension| extension.record.plan() == plan)
    }

    /// The schema of a tool's arguments, if it has a valid one.
    pub fn schema(&self, tool: &str) -> Option<Schema> {
        self.names.schema(tool).cloned()
    }

    /// A number for another call.
    pub fn next_call(&mut self) -> CallId {
        self.calls += 1;
        self.calls
    }

    /// Counts a call that has ended.
    pub fn called(&mut self, key: &Key, took: Duration, failed: bool) {
        if let Some(extension) = self.extensions.get_mut(key) {
            extension.record.called(took, failed);
        }
    }

    /// The epoch that a view begins to look at.
    pub fn open_view(&mut self) -> Epoch {
        *self.views.entry(self.epoch).or_default() += 1;
        self.epoch
    }

    /// A view looks no more. True if it was an old one: a load that was replaced may have waited for that.
    pub fn close_view(&mut self, epoch: Epoch) -> bool {
        if let Some(count) = self.views.get_mut(&epoch) {
            *count -= 1;
            if *count == 0 {
                self.views.remove(&epoch);
            }
        }
        epoch < self.epoch
    }

    /// The newest epoch.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Keeps a load for somebody who is about to call it.
    pub fn pin(&mut self, peer: &Peer) {
        if let Some(load) = self.load_mut(peer) {
            load.pins += 1;
        }
    }

    /// Finds something in the loads that serve, in the order of hooks, from the one after `after` on.
    pub fn find_serving<T>(
        &self,
        epoch: Epoch,
        after: Option<&Key>,
        wanted: impl Fn(&Extension<L>, &Load<L>) -> Option<T>,
    ) -> Option<(Peer, T)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.extensions.range::<Key, _>((from, Bound::Unbounded)).find_map(|(key, extension)| {
            let load = extension.serving(epoch)?;
            let found = wanted(extension, load)?;
            Some((Peer { key: key.clone(), generation: load.generation }, found))
        })
    }

    /// The extension and the load that a message came from, if that load is still there.
    pub(super) fn of(&mut self, peer: &Peer) -> Option<(&mut Extension<L>, Slot)> {
        let extension = self.extensions.get_mut(&peer.key)?;
        let is_it = |load: &Load<L>| load.generation == peer.generation;
        let slot = if extension.current.as_ref().is_some_and(is_it) {
            Slot::Current
        } else if extension.next.as_ref().is_some_and(is_it) {
            Slot::Next
        } else {
            Slot::Draining(extension.draining.iter().position(is_it)?)
        };
        Some((extension, slot))
    }

    pub(super) fn load_mut(&mut self, peer: &Peer) -> Option<&mut Load<L>> {
        let extension = self.extensions.get_mut(&peer.key)?;
        extension.loads_mut().find(|load| load.generation == peer.generation)
    }

    /// The extensions, but one, that are about to be replaced by something else: a name they have may become
    /// free. One that is only loaded again keeps its names.
    pub(super) fn leaving(&self, but: &Key) -> BTreeSet<Key> {
        let leaves = |it: &Extension<L>| it.next.is_some() && it.changed;
        let others = self.extensions.iter().filter(|(key, it)| *key != but && leaves(it));
        others.map(|(key, _)| key.clone()).collect()
    }

    /// Takes a load out of the table.
    pub(super) fn take(&mut self, peer: &Peer) -> Effects<L> {
        let Some((extension, slot)) = self.of(peer) else { return Effects::new() };
        let load = match slot {
            Slot::Current => extension.current.take(),
            Slot::Next => extension.next.take(),
            Slot::Draining(index) => Some(extension.draining.remove(index)),
        };
        let mut effects: Effects<L> =
            load.into_iter().map(|load| Effect::Dropped(Box::new(load))).collect();
        if slot == Slot::Current {
            self.names.remove(&peer.key);
            effects.push(Effect::CanvasesGone(peer.key.clone()));
        }
        effects.extend(self.forget_if_gone(&peer.key));
        effects
    }

    /// Forgets an extension that was taken away, once nothing of it is left.
    pub(super) fn forget_if_gone(&mut self, key: &Key) -> Option<Effect<L>> {
        let is_gone = |it: &Extension<L>| it.leaves() && it.loads().next().is_none();
        let gone = self.extensions.get(key).is_some_and(is_gone);
        gone.then(|| {
            self.extensions.remove(key);
            Effect::Forgotten(key.clone())
        })
    }
}

impl<L: Payload> Table<L> {
    /// Whoever was about to call a load has done so, or does not. True if a load that was replaced may have waited for that.
    pub fn unpin(&mut self, peer: &Peer) -> bool {
        let Some(load) = self.load_mut(peer) else { return false };
        load.pins = load.pins.saturating_sub(1);
        load.was_replaced() && !load.is_busy()
    }

    /// Whether a load was replaced and has nothing to do any more.
    pub fn is_done(&self, peer: &Peer) -> bool {
        self.load(peer).is_some_and(|load| load.was_replaced() && !load.is_busy())
    }

    /// Whether somebody waits for a load, or is about to.
    pub fn is_busy(&self, peer: &Peer) -> bool {
        self.load(peer).is_some_and(Load::is_busy)
    }

    /// Tells a replaced load that it stops, if nobody needs it any more or it is gone. Under the same lock as the check:
    /// whoever found this load in an earlier view and calls it from now on is sent to the newest instead.
    pub fn stop_if_drained(&mut self, peer: &Peer) -> bool {
        let newer = self.extensions.get(&peer.key).map_or(0, |extension| {
            extension.draining.iter().filter(|load| load.generation > peer.generation).count()
        });
        let Some(load) = self.load(peer) else { return true };
        if load.is_busy() {
            return false;
        }
        let until = load.serves.1.unwrap_or_default();
        let may_be_asked = load.has_tool_hooks() && newer < MAX_KEPT;
        if may_be_asked && self.views.range(..until).next().is_some() {
            return false;
        }
        if let Some(load) = self.load_mut(peer) {
            load.stage = Stage::Stopping;
        }
        true
    }
}

/// Replaced loads of one extension that are kept for those who began before they were replaced. Beyond
/// these, an old load is kept only for calls it has.
pub(super) const MAX_KEPT: usize = 4;
