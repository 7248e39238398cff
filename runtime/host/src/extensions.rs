//! All extensions of a session: what each one is, and which load of it serves whom.
//!
//! An extension is loaded again while the load before still serves. What is on its way in waits in `next`,
//! `current` serves, and what was replaced finishes its calls in `draining`. A chain of hooks, or a tool call
//! with the hooks around it, looks at everything through a [`View`]: it meets the loads that served when it
//! began, all of them, whatever is replaced meanwhile.

pub mod calls;
pub mod load;
mod promptness;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use std::collections::BTreeMap;
use std::collections::HashSet;
use std::ops::Bound;
use std::path::PathBuf;
use std::time::Duration;

use tenon_protocol::message::CallId;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::LogRecord;
use tokio::sync::watch;

pub use calls::CallFailure;
pub use load::Load;
pub use load::Peer;

use crate::discovery::Found;
use crate::discovery::Scope;
use crate::extension::ExtensionInfo;
use crate::extension::Hook;
use crate::extension::LoadError;
use crate::extension::Registration;
use crate::extension::Status;
use crate::log_files::LogFiles;
use crate::logs::Log;
use crate::logs::LogLine;
use crate::registry::Registry;
use crate::supervision::Record;
use crate::tool::SharedTool;

/// Scope, name and folder: names alone are not unique. Their order is the order of hooks.
pub type Key = (Scope, String, PathBuf);

/// `scope:name`.
pub fn id_of(key: &Key) -> String {
    format!("{}:{}", key.0, key.1)
}

/// Counts up whenever a load begins or ceases to serve.
pub type Epoch = u64;

/// One extension.
pub struct Extension {
    pub info: ExtensionInfo,
    /// What lies on disk, as it was last seen.
    pub found: Found,
    /// The load that serves.
    pub current: Option<Load>,
    /// The load that is to replace it, until it is ready.
    pub next: Option<Load>,
    /// Loads that were replaced and finish their calls.
    pub draining: Vec<Load>,
    /// The files that the newest load was made from, with the hash of what was in them.
    pub files: BTreeMap<PathBuf, String>,
    /// Those files outside of its folder that the newest load has read, packages included, with the hash of what was in them.
    pub outside: BTreeMap<PathBuf, String>,
    /// Whether something else was on disk, when it was last looked at, than what the load that serves was
    /// made from.
    pub changed: bool,
    /// The plan by which the load that serves makes room for the next, while that is waited for.
    pub room: Option<u64>,
    /// The hash of the content that the person was last asked about.
    pub asked: Option<String>,
    /// What is on disk and waits for the person's approval, while the load that serves goes on.
    pub held: Option<String>,
    /// How it has fared.
    pub record: Record,
    /// The tools it had when it last served, in case it comes back.
    pub had: Vec<String>,
    pub log: Log,
    /// Where its log is kept beside the memory.
    pub log_files: Option<LogFiles>,
}

impl Extension {
    pub fn new(info: ExtensionInfo, found: Found) -> Self {
        Self {
            info,
            found,
            current: None,
            next: None,
            draining: Vec::new(),
            files: BTreeMap::new(),
            outside: BTreeMap::new(),
            changed: false,
            room: None,
            asked: None,
            held: None,
            record: Record::default(),
            had: Vec::new(),
            log: Log::default(),
            log_files: None,
        }
    }

    /// Whether a load serves.
    pub fn is_loaded(&self) -> bool {
        self.current.is_some()
    }

    /// Whether a load is on its way.
    pub fn is_starting(&self) -> bool {
        // A plan that was overtaken is not waited for.
        let makes_room = self.room == Some(self.record.plan);
        let starts = self.next.is_some() || self.info.status == Status::Starting;
        starts || makes_room || self.record.returns_soon()
    }

    /// Whether it had a tool and is about to have it again.
    pub fn brings_back(&self, tool: &str) -> bool {
        let starts = self.next.is_some() || self.info.status == Status::Starting;
        let comes = self.record.returns.is_some() || starts;
        comes && self.had.iter().any(|had| had == tool)
    }

    /// What is on disk waits for an approval, or nothing does.
    pub fn hold(&mut self, held: Option<String>) {
        self.info.waits_for_approval = held.is_some();
        self.held = held;
    }

    /// Adds to its log.
    pub fn note(&mut self, level: LogLevel, text: impl Into<String>) {
        let line = self.log.push(LogRecord { level, text: text.into() });
        if let (Some(files), Some(file)) = (&self.log_files, &self.info.log_file) {
            files.write(file, &line);
        }
    }

    /// Something the host did, in its log.
    pub fn mark(&mut self, text: &str) {
        self.note(LogLevel::Info, format!("=== {text} ==="));
    }

    /// It does not run, or what is on disk does not; what it had registered stays with the load that serves.
    pub fn blame(&mut self, error: LoadError) {
        self.info.last_error = Some(error.clone());
        self.info.error = Some(error);
    }

    /// Another extension has taken tools over; the load that serves until the next one is ready does so
    /// without them.
    pub fn give_up_tools(&mut self, names: &[String]) {
        let stays = |tool: &SharedTool| !names.contains(&tool.name);
        self.info.tools.retain(stays);
        if let Some(current) = &mut self.current {
            current.offers.tools.retain(stays);
        }
    }

    /// Every load there is.
    pub fn loads_mut(&mut self) -> impl Iterator<Item = &mut Load> {
        self.current.iter_mut().chain(&mut self.next).chain(&mut self.draining)
    }

    /// The load that serves whoever began at the given epoch. One that was told to stop answers nothing more.
    fn serving(&self, epoch: Epoch) -> Option<&Load> {
        let current = self.current.as_ref();
        if current.is_some_and(|current| current.served(epoch)) {
            return current;
        }
        let serves = |load: &&Load| load.served(epoch) && !load.is_stopping;
        self.draining.iter().rev().find(serves).or(current)
    }
}

/// What is under the lock.
#[derive(Default)]
pub struct State {
    pub map: BTreeMap<Key, Extension>,
    pub registry: Registry,
    /// What was offered when it was last announced: tools, commands, canvases.
    pub offered: [String; 3],
    pub epoch: Epoch,
    /// How many look at which epoch.
    views: BTreeMap<Epoch, usize>,
    next_call: CallId,
}

impl State {
    /// The extension and the load that a message came from, if that load is still there.
    pub fn of(&mut self, peer: &Peer) -> Option<(&mut Extension, Slot)> {
        let extension = self.map.get_mut(&peer.key)?;
        let is_it = |load: &Load| load.generation == peer.generation;
        let slot = if extension.current.as_ref().is_some_and(is_it) {
            Slot::Current
        } else if extension.next.as_ref().is_some_and(is_it) {
            Slot::Next
        } else {
            Slot::Draining(extension.draining.iter().position(is_it)?)
        };
        Some((extension, slot))
    }

    /// The load that a message came from, if it is still there.
    pub fn load(&mut self, peer: &Peer) -> Option<&mut Load> {
        let extension = self.map.get_mut(&peer.key)?;
        extension.loads_mut().find(|load| load.generation == peer.generation)
    }

    /// The extensions, but one, that are about to be replaced by something else: a name they have may become
    /// free. One that is only loaded again keeps its names.
    pub fn leaving(&self, but: &Key) -> HashSet<String> {
        let leaves = |it: &Extension| it.next.is_some() && it.changed;
        let others = self.map.iter().filter(|(key, it)| *key != but && leaves(it));
        others.map(|(_, extension)| extension.info.id.clone()).collect()
    }

    /// Whether somebody began before the given epoch and is not done.
    pub fn is_viewed_before(&self, epoch: Epoch) -> bool {
        self.views.range(..epoch).next().is_some()
    }
}

/// Where a load is on its way through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    Current,
    Next,
    Draining(usize),
}

/// All extensions of a session.
pub struct Extensions {
    state: Mutex<State>,
    /// Counts up whenever an extension's status changes, or a load has less to do.
    changed: watch::Sender<u64>,
}

impl Extensions {
    pub fn new() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(0) }
    }

    /// The state. No code of others runs under the lock, and nothing in it waits.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Says that an extension's status changed.
    pub fn announce(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Waits until something holds; asked again whenever something was announced.
    pub async fn until(&self, mut holds: impl FnMut(&mut State) -> bool) {
        let mut changed = self.changed.subscribe();
        while !holds(&mut self.lock()) {
            // The sender lives as long as we do.
            let _ = changed.changed().await;
        }
    }

    /// Waits until no extension is starting.
    pub async fn settled(&self) {
        self.until(|state| !state.map.values().any(Extension::is_starting)).await;
    }

    /// Every extension, by scope and name.
    pub fn list(&self) -> Vec<ExtensionInfo> {
        self.lock().map.values().map(|extension| extension.info.clone()).collect()
    }

    /// The log of an extension.
    pub fn log(&self, info: &ExtensionInfo) -> Vec<LogLine> {
        let state = self.lock();
        let found = state.map.values().find(|extension| extension.info.path == info.path);
        found.map(|extension| extension.log.lines()).unwrap_or_default()
    }

    /// Adds to an extension's log.
    pub fn note(&self, key: &Key, level: LogLevel, text: impl Into<String>) {
        if let Some(extension) = self.lock().map.get_mut(key) {
            extension.note(level, text);
        }
    }

    /// The load of an extension that serves.
    pub fn loaded(&self, id: &str) -> Option<Pinned<'_>> {
        let mut state = self.lock();
        let is_it =
            |(_, extension): &(&Key, &Extension)| extension.info.id == id && extension.is_loaded();
        let (key, extension) = state.map.iter().find(is_it)?;
        let peer = Peer { key: key.clone(), generation: extension.current.as_ref()?.generation };
        Some(self.pin(&mut state, peer))
    }

    /// Keeps a load for somebody who is about to call it.
    fn pin(&self, state: &mut State, peer: Peer) -> Pinned<'_> {
        if let Some(load) = state.load(&peer) {
            load.pins += 1;
        }
        Pinned { extensions: self, peer }
    }

    /// What serves now, to be looked at for as long as the view is kept.
    pub fn view(&self) -> View<'_> {
        let mut state = self.lock();
        let epoch = state.epoch;
        *state.views.entry(epoch).or_default() += 1;
        View { extensions: self, epoch }
    }

    /// The next extension after `after` that has a handler of the given name.
    pub fn next_with_handler(
        &self,
        after: Option<&Key>,
        handler: &str,
    ) -> Option<HandlerTarget<'_>> {
        let mut state = self.lock();
        let epoch = state.epoch;
        let (peer, (id, deadline)) = next(&state, epoch, after, |extension, load| {
            let has_it = load.offers.handlers.iter().any(|name| name == handler);
            let deadline = extension.info.limits.handler_deadline();
            has_it.then(|| (extension.info.id.clone(), deadline))
        })?;
        Some(HandlerTarget { peer: self.pin(&mut state, peer), id, deadline })
    }
}

/// Finds something in the loads that serve, in the order of hooks.
fn next<T>(
    state: &State,
    epoch: Epoch,
    after: Option<&Key>,
    wanted: impl Fn(&Extension, &Load) -> Option<T>,
) -> Option<(Peer, T)> {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    state.map.range::<Key, _>((from, Bound::Unbounded)).find_map(|(key, extension)| {
        let load = extension.serving(epoch)?;
        let found = wanted(extension, load)?;
        Some((Peer { key: key.clone(), generation: load.generation }, found))
    })
}

/// The loads that served at one moment. While it is kept, those with hooks are kept too, for a while.
pub struct View<'a> {
    extensions: &'a Extensions,
    epoch: Epoch,
}

impl<'a> View<'a> {
    /// The next extension after `after`, in the order of hooks, that has a hook.
    pub fn next_with_hook(&self, after: Option<&Key>, hook: Hook) -> Option<HookTarget<'a>> {
        let mut state = self.extensions.lock();
        let found = next(&state, self.epoch, after, |extension, load| {
            let declared = load.offers.hooks.iter().find(|it| it.name == hook.name())?;
            let deadline = extension.info.limits.hook_deadline();
            Some((extension.info.id.clone(), declared.fail_closed, deadline))
        });
        let (peer, (id, fails_closed, deadline)) = found?;
        let peer = self.extensions.pin(&mut state, peer);
        Some(HookTarget { peer, id, fails_closed, deadline })
    }

    /// Looks for something in what extensions offer.
    pub fn find<T>(
        &self,
        wanted: impl Fn(&Extension, &Registration) -> Option<T>,
    ) -> Option<(Pinned<'a>, T)> {
        let mut state = self.extensions.lock();
        let found =
            next(&state, self.epoch, None, |extension, load| wanted(extension, &load.offers));
        let (peer, found) = found?;
        Some((self.extensions.pin(&mut state, peer), found))
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        let is_old = {
            let mut state = self.extensions.lock();
            if let Some(count) = state.views.get_mut(&self.epoch) {
                *count -= 1;
                if *count == 0 {
                    state.views.remove(&self.epoch);
                }
            }
            self.epoch < state.epoch
        };
        // A load that was replaced may have waited for this.
        if is_old {
            self.extensions.announce();
        }
    }
}

/// A load that somebody is about to call; it is not ended before that.
pub struct Pinned<'a> {
    extensions: &'a Extensions,
    peer: Peer,
}

impl std::ops::Deref for Pinned<'_> {
    type Target = Peer;

    fn deref(&self) -> &Peer {
        &self.peer
    }
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let was_last = {
            let mut state = self.extensions.lock();
            let Some(load) = state.load(&self.peer) else { return };
            load.pins -= 1;
            load.serves.1.is_some() && !load.is_busy()
        };
        if was_last {
            self.extensions.announce();
        }
    }
}

/// An extension's hook, about to be run.
pub struct HookTarget<'a> {
    pub peer: Pinned<'a>,
    pub id: String,
    pub fails_closed: bool,
    pub deadline: Duration,
}

/// An extension's handler of requests, about to be asked.
pub struct HandlerTarget<'a> {
    pub peer: Pinned<'a>,
    pub id: String,
    pub deadline: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_to_make_room_is_waited_for_until_it_is_overtaken() {
        let found = Found {
            scope: Scope::Project,
            name: "x".to_owned(),
            folder: "/x".into(),
            entry: Err("there is none".to_owned()),
            shadowed_by: None,
        };
        let mut extension = Extension::new(ExtensionInfo::new(&found), found);
        extension.info.status = Status::Running;
        assert!(!extension.is_starting());
        extension.room = Some(extension.record.plan);
        assert!(extension.is_starting());
        extension.record.plan += 1;
        assert!(!extension.is_starting());
    }
}
