//! From a folder on disk to a load that starts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tenon_protocol::layers::Layers;
use tenon_protocol::message::LoadedFile;

use super::Effect;
use super::Effects;
use super::Extension;
use super::Key;
use super::Load;
use super::Payload;
use super::Peer;
use super::Slot;
use super::Stage;
use super::Stays;
use super::Table;
use super::effects::mark;
use crate::discovery::Found;
use crate::extension::ExtensionInfo;
use crate::extension::LoadError;
use crate::extension::Status;

/// What keeps an extension from being started.
#[derive(Debug, Clone, PartialEq)]
pub struct Obstructed {
    pub status: Status,
    pub error: LoadError,
    /// What is on disk, if only this waits for an approval and the load that serves goes on.
    pub held: Option<String>,
}

impl<L> Table<L> {
    /// Lists an extension that was found. `fresh` is what it is if no load of it serves. It counts as starting until
    /// [`Self::blocked`], [`Self::attach`] or [`Self::not_started`] says what becomes of it.
    pub fn discovered(&mut self, key: &Key, found: &Found, fresh: ExtensionInfo) {
        let extension = self
            .extensions
            .entry(key.clone())
            .or_insert_with(|| Extension::new(fresh.clone(), found.clone()));
        extension.found = found.clone();
        extension.record.overtake();
        if !extension.is_loaded() {
            let before = std::mem::replace(&mut extension.info, fresh);
            extension.info.generation = before.generation;
            extension.info.last_error = before.last_error;
            extension.info.failures = before.failures;
            extension.info.waits_for_approval = extension.held.is_some();
        }
    }

    /// Nothing speaks against starting it: a number for the load that is about to be, and the end of the one that was on its
    /// way. `files` is its entry.
    pub fn begin(
        &mut self,
        key: &Key,
        files: BTreeMap<PathBuf, String>,
    ) -> Option<(Peer, Effects<L>)> {
        let extension = self.extensions.get_mut(key)?;
        extension.hold(None);
        extension.files = files;
        extension.outside.clear();
        extension.record.no_return();
        let generation = extension.record.next_generation();
        extension.begun = Some(generation);
        let overtaken = extension.next.take();
        let effects = overtaken.into_iter().map(|load| Effect::Dropped(Box::new(load))).collect();
        Some((Peer { key: key.clone(), generation }, effects))
    }

    /// Whether a load that was begun is still wanted.
    pub fn is_begun(&self, peer: &Peer) -> bool {
        let extension = self.extensions.get(&peer.key);
        extension.is_some_and(|extension| extension.begun == Some(peer.generation))
    }

    /// A load that was begun has an isolate: it starts beside the one that serves, or as the one that serves. One that is not
    /// wanted any more is given back.
    pub fn attach(
        &mut self,
        peer: &Peer,
        hash: Option<String>,
        payload: L,
    ) -> Result<Effects<L>, L> {
        if !self.is_begun(peer) {
            return Err(payload);
        }
        let epoch = self.epoch;
        let Some(extension) = self.extensions.get_mut(&peer.key) else { return Err(payload) };
        extension.begun = None;
        let mut load = Load::new(peer.generation, hash, payload);
        if extension.is_loaded() {
            extension.next = Some(load);
        } else {
            load.serves = (epoch, None);
            extension.info.status = Status::Starting;
            extension.info.generation = load.generation;
            extension.info.hash = load.hash.clone();
            extension.info.pid = None;
            extension.current = Some(load);
        }
        Ok(Effects::from([mark(&peer.key, &format!("starting generation {}", peer.generation))]))
    }

    /// No load of it could be started. One that was begun is wanted no more.
    pub fn not_started(&mut self, key: &Key, error: LoadError) -> Effects<L> {
        let Some(extension) = self.extensions.get_mut(key) else { return Effects::new() };
        extension.begun = None;
        extension.hold(None);
        extension.fail_load(error);
        Effects::from([Effect::Changed])
    }

    /// The process of a load exists.
    pub fn process_started(&mut self, peer: &Peer, pid: u32, layers: Layers) -> Effects<L> {
        let Some((extension, slot)) = self.of(peer) else { return Effects::new() };
        let load = match slot {
            Slot::Current => extension.current.as_mut(),
            Slot::Next => extension.next.as_mut(),
            Slot::Draining(index) => extension.draining.get_mut(index),
        };
        let Some(load) = load else { return Effects::new() };
        if load.pid.is_some() || matches!(load.stage, Stage::Joined | Stage::Running) {
            return Effects::from([illegal(peer, "its process was started before")]);
        }
        (load.pid, load.layers) = (Some(pid), Some(layers.clone()));
        if slot == Slot::Current {
            extension.info.pid = Some(pid);
            extension.info.sandbox = Some(layers);
        }
        Effects::from([mark(
            &peer.key,
            &format!("generation {} runs in process {pid}", peer.generation),
        )])
    }

    /// Files that a load has read. `folder` is the extension's, with links followed.
    pub fn files_read(
        &mut self,
        peer: &Peer,
        files: Vec<LoadedFile>,
        folder: &std::path::Path,
    ) -> Effects<L> {
        let Some((extension, slot)) = self.of(peer) else { return Effects::new() };
        // Files of a load that was overtaken say nothing about the newest.
        let newest = extension.next.is_none() || slot == Slot::Next;
        if !newest || matches!(slot, Slot::Draining(_)) {
            return Effects::new();
        }
        let mut outside = Vec::new();
        for file in files {
            if !file.is_package {
                extension.files.insert(file.path.clone(), file.hash.clone());
            }
            if !file.path.starts_with(folder) {
                extension.outside.insert(file.path.clone(), file.hash.clone());
                outside.push(file);
            }
        }
        extension.info.files = extension.files.keys().cloned().collect();
        Effects::from([Effect::FilesRead { key: peer.key.clone(), outside }])
    }

    /// The person is asked whether a content may run. False if they were asked already.
    pub fn asked(&mut self, key: &Key, hash: &str) -> bool {
        let Some(extension) = self.extensions.get_mut(key) else { return false };
        let is_news = extension.asked.as_deref() != Some(hash);
        extension.asked = Some(hash.to_owned());
        is_news
    }

    /// Its files changed, or somebody wants it to run: a new chance.
    pub fn forgive(&mut self, key: &Key) {
        if let Some(extension) = self.extensions.get_mut(key) {
            extension.record.forgive();
        }
    }

    /// What is on disk is not what the load that serves was made from. What was changed and did not load stays changed.
    pub fn changed(&mut self, key: &Key) {
        if let Some(extension) = self.extensions.get_mut(key) {
            extension.changed = true;
        }
    }

    /// Failures until now do not count for the load that was just started. They are listed until it runs.
    pub fn start_afresh(&mut self, key: &Key) {
        if let Some(extension) = self.extensions.get_mut(key) {
            extension.record.forget_failures();
        }
    }

    /// Failures until now do not count any more.
    pub fn forget_failures(&mut self, key: &Key) {
        if let Some(extension) = self.extensions.get_mut(key) {
            extension.record.forget_failures();
            extension.info.failures = 0;
        }
    }
}

impl<L: Payload> Table<L> {
    /// Something keeps an extension from being started. `files` is its entry, which is watched.
    pub fn blocked(
        &mut self,
        key: &Key,
        by: Obstructed,
        files: BTreeMap<PathBuf, String>,
    ) -> Effects<L> {
        let Some(extension) = self.extensions.get_mut(key) else { return Effects::new() };
        let Obstructed { status, error, held } = by;
        let goes_on = extension.is_loaded() && held.is_some();
        extension.begun = None;
        extension.hold(held);
        if goes_on {
            extension.blame(error);
            return Effects::from([Effect::Changed]);
        }
        if extension.is_loaded() {
            return self.retire(key, Stays::Listed(status, error));
        }
        extension.files = files;
        extension.info.fail(status, error);
        // The one that served has ended meanwhile.
        let overtaken = extension.next.take();
        let dropped = overtaken.into_iter().map(|load| Effect::Dropped(Box::new(load)));
        dropped.chain([Effect::Changed]).collect()
    }
}

/// What a load's process said is ignored, because it does not fit.
pub(super) fn illegal<L>(peer: &Peer, why: &str) -> Effect<L> {
    let text = format!("a message of generation {} is ignored: {why}", peer.generation);
    Effect::Log(peer.key.clone(), tenon_protocol::message::LogLevel::Warning, text)
}
