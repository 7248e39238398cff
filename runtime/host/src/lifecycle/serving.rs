//! A load joins, becomes ready and takes over from the one before.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use tenon_protocol::message::LogLevel;
use tenon_protocol::message::ReadyReport;

use super::CheckedOffers;
use super::Effect;
use super::Effects;
use super::Extension;
use super::Key;
use super::Load;
use super::Peer;
use super::Slot;
use super::Stage;
use super::Table;
use super::effects::mark;
use super::id_of;
use super::names::Taken;
use super::starting::illegal;
use crate::events::Filter;
use crate::extension::LoadError;
use crate::extension::Status;

/// A load must not join.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It has ended, was replaced, or was told to stop.
    #[error("the extension is not loaded any more")]
    Gone,
    /// Something that it offers has the name of something that another offers.
    #[error(transparent)]
    Taken(#[from] Taken),
}

impl<L> Table<L> {
    /// A load offers something, for the first time or instead of what it has offered.
    pub fn joined(&mut self, peer: &Peer, offers: CheckedOffers) -> Result<Effects<L>, Refusal> {
        let key = &peer.key;
        let stage = self.load(peer).ok_or(Refusal::Gone)?.stage;
        let (_, slot) = self.of(peer).ok_or(Refusal::Gone)?;
        if matches!(slot, Slot::Draining(_)) || stage == Stage::Stopping {
            return Err(Refusal::Gone);
        }
        let leaving = self.leaving(key);
        let serves = slot == Slot::Current;
        let extension = self.extensions.get(key).ok_or(Refusal::Gone)?;
        self.check_commands(key, &extension.info.path, &offers, &leaving)?;
        // One that is to replace another takes over the names when it does; that they are free is
        // checked now as well, so that joinSession says it.
        let path = &extension.info.path;
        if serves {
            self.names.register(key, path, &offers, &BTreeSet::new())?;
        } else {
            self.names.check(key, path, &offers, &leaving)?;
        }
        let (extension, _) = self.of(peer).ok_or(Refusal::Gone)?;
        let mut effects = Effects::new();
        if serves {
            extension.serve(&offers);
            effects.extend(warnings(key, &offers));
        }
        let rejoined = serves && extension.info.status == Status::Running;
        let load = self.load_mut(peer).ok_or(Refusal::Gone)?;
        if load.stage == Stage::Starting {
            load.stage = Stage::Joined;
        }
        for kind in &offers.registration().subscribe {
            load.wanted.add(kind);
        }
        load.offers = offers;
        if serves {
            effects.push(Effect::Subscribe(peer.clone(), load.wanted.clone()));
        }
        if rejoined {
            effects.push(Effect::OffersChanged);
        }
        Ok(effects)
    }

    /// A load takes back everything it offers; it stays loaded.
    pub fn left(&mut self, peer: &Peer) -> Effects<L> {
        let Some((extension, slot)) = self.of(peer) else { return Effects::new() };
        let serves = slot == Slot::Current;
        let load = extension.loads_mut().find(|load| load.generation == peer.generation);
        let Some(load) = load else { return Effects::new() };
        if load.stage == Stage::Starting {
            return Effects::from([illegal(peer, "it leaves, and has not joined")]);
        }
        load.offers = CheckedOffers::default();
        load.wanted = Filter::default();
        if !serves {
            return Effects::new();
        }
        extension.info.register(CheckedOffers::default().registration());
        self.names.remove(&peer.key);
        Effects::from([
            Effect::Subscribe(peer.clone(), Filter::default()),
            Effect::CanvasesGone(peer.key.clone()),
            Effect::OffersChanged,
        ])
    }

    /// A load wants other events. It gets them if it serves.
    pub fn subscribed(&mut self, peer: &Peer, change: impl FnOnce(&mut Filter)) -> Effects<L> {
        let Some((extension, slot)) = self.of(peer) else { return Effects::new() };
        let load = extension.loads_mut().find(|load| load.generation == peer.generation);
        let Some(load) = load else { return Effects::new() };
        change(&mut load.wanted);
        if slot != Slot::Current {
            return Effects::new();
        }
        Effects::from([Effect::Subscribe(peer.clone(), load.wanted.clone())])
    }

    /// A load has joined and run as far as it can: it serves from now on.
    pub fn ready(&mut self, peer: &Peer, report: ReadyReport, now: Instant) -> Effects<L> {
        let Some(stage) = self.load(peer).map(|load| load.stage) else { return Effects::new() };
        let Some((_, slot)) = self.of(peer) else { return Effects::new() };
        match (slot, stage) {
            // It was replaced or told to stop while it started.
            (Slot::Draining(_), _) | (_, Stage::Stopping) => return Effects::new(),
            (_, Stage::Starting) => {
                return Effects::from([illegal(peer, "it is ready, and has not joined")]);
            }
            (_, Stage::Running) => return Effects::from([illegal(peer, "it is ready already")]),
            (Slot::Current | Slot::Next, Stage::Joined) => {}
        }
        let mut effects = Effects::new();
        let replaced = if slot == Slot::Next {
            match self.promote(&peer.key, &mut effects) {
                Ok(replaced) => replaced,
                Err(rejected) => return self.reject(&peer.key, *rejected),
            }
        } else {
            None
        };
        let Some((extension, Slot::Current)) = self.of(peer) else { return effects };
        if let Some(load) = &mut extension.current {
            load.ready_at = Some(now);
            load.stage = Stage::Running;
        }
        let ms = report.wall_us as f64 / 1000.0;
        let text = format!("generation {} is ready after {ms:.1} ms", peer.generation);
        effects.push(mark(&peer.key, &text));
        extension.changed = false;
        extension.info.ready = Some(report);
        extension.info.engine = Some(report.engine);
        extension.info.status = Status::Running;
        // What is on disk may wait for the person, who has to see that for as long as it does.
        if extension.held.is_none() {
            extension.info.error = None;
        }
        // What failed before its files changed is over once the changed files run, not earlier.
        extension.info.failures = extension.record.failures();
        if extension.record.failures() > 0 {
            effects.push(Effect::ForgiveLater(peer.clone()));
        }
        if let Some(replaced) = replaced {
            // What it had open is served by nobody any more.
            effects.extend([Effect::CanvasesGone(peer.key.clone()), Effect::Drain(replaced)]);
        }
        effects.extend([Effect::Changed, Effect::OffersChanged]);
        effects
    }

    /// A load has run well for long enough for the failures before it to be forgotten.
    pub fn well_for_long(&mut self, peer: &Peer) {
        if let Some((_, Slot::Current)) = self.of(peer) {
            self.forget_failures(&peer.key);
        }
    }

    /// Puts the load that is ready in the place of the one that serves. Tools, hooks, commands and canvases
    /// change at once. Returns the load that was replaced, or the newcomer that cannot take over.
    fn promote(
        &mut self,
        key: &Key,
        effects: &mut Effects<L>,
    ) -> Result<Option<Peer>, Box<(Load<L>, Taken)>> {
        let leaving = self.leaving(key);
        let Some(extension) = self.extensions.get_mut(key) else { return Ok(None) };
        let Some(mut load) = extension.next.take() else { return Ok(None) };
        let path = extension.info.path.clone();
        if let Err(taken) = self.names.register(key, &path, &load.offers, &leaving) {
            return Err(Box::new((load, taken)));
        }
        effects.extend(warnings(key, &load.offers));
        self.epoch += 1;
        load.serves = (self.epoch, None);
        extension.serve(&load.offers);
        extension.info.generation = load.generation;
        extension.info.hash = load.hash.clone();
        extension.info.pid = load.pid;
        extension.info.sandbox = load.layers.clone();
        extension.info.path = extension.found.entry.clone().unwrap_or_else(|_| key.2.clone());
        let replaced = extension.replace_current(key, self.epoch);
        if let Some(replaced) = &replaced {
            effects.push(Effect::Subscribe(replaced.clone(), Filter::default()));
        }
        let newcomer = Peer { key: key.clone(), generation: load.generation };
        effects.push(Effect::Subscribe(newcomer, load.wanted.clone()));
        let names = extension.had.clone();
        extension.current = Some(load);
        for other in leaving {
            if let Some(other) = self.extensions.get_mut(&other) {
                other.give_up_tools(&names);
            }
        }
        Ok(replaced)
    }

    /// A load was ready but cannot take over: it is ended, and the one before goes on.
    fn reject(&mut self, key: &Key, (newcomer, taken): (Load<L>, Taken)) -> Effects<L> {
        let text = taken.to_string();
        if let Some(extension) = self.extensions.get_mut(key) {
            extension.blame(LoadError::new(text.clone(), None));
        }
        let log = Effect::Log(key.clone(), LogLevel::Error, text);
        Effects::from([
            log,
            Effect::Stop(Box::new(newcomer)),
            Effect::Changed,
            Effect::OffersChanged,
        ])
    }

    fn check_commands(
        &self,
        key: &Key,
        path: &Path,
        offers: &CheckedOffers,
        leaving: &BTreeSet<Key>,
    ) -> Result<(), Taken> {
        for command in &offers.registration().commands {
            let has_it =
                |it: &Extension<L>| it.info.commands.iter().any(|has| has.name == command.name);
            let owner = self.extensions.iter().find(|(other, extension)| {
                *other != key
                    && !leaving.contains(*other)
                    && extension.is_loaded()
                    && has_it(extension)
            });
            if let Some((_, owner)) = owner {
                return Err(Taken {
                    what: format!("command /{}", command.name),
                    owner: owner.info.id.clone(),
                    owner_path: owner.info.path.clone(),
                    newcomer: id_of(key),
                    newcomer_path: path.to_owned(),
                });
            }
        }
        Ok(())
    }
}

impl<L> Extension<L> {
    /// The load that serves does so no more, and finishes its calls.
    pub(super) fn replace_current(&mut self, key: &Key, epoch: super::Epoch) -> Option<Peer> {
        let mut old = self.current.take()?;
        old.serves.1 = Some(epoch);
        let peer = Peer { key: key.clone(), generation: old.generation };
        self.draining.push(old);
        Some(peer)
    }
}

fn warnings<L>(key: &Key, offers: &CheckedOffers) -> Vec<Effect<L>> {
    let warning = |text: &String| Effect::Log(key.clone(), LogLevel::Warning, text.clone());
    offers.warnings().iter().map(warning).collect()
}
