//! All extensions of a session, under one lock. What each one is, and what becomes of it, is decided by the state machine in
//! [`crate::lifecycle`]; this is its lock, its logs, and whoever waits for it.

pub mod calls;
mod connection;
mod promptness;
mod view;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::time::Duration;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::LogRecord;
use tokio::sync::watch;

pub use calls::CallFailure;
pub use connection::Connection;
pub use view::HandlerTarget;
pub use view::HookTarget;
pub use view::Pinned;
pub use view::View;

use crate::extension::CanvasDeclaration;
use crate::extension::CommandDeclaration;
use crate::extension::ExtensionInfo;
use crate::lifecycle;
pub use crate::lifecycle::Key;
pub use crate::lifecycle::Peer;
pub use crate::lifecycle::id_of;
use crate::log_files::LogFiles;
use crate::logs::Log;
use crate::logs::LogLine;
use crate::tool::SharedTool;

pub type Table = lifecycle::Table<Connection>;
pub type Extension = lifecycle::Extension<Connection>;
pub type Effect = lifecycle::Effect<Connection>;
pub type Effects = lifecycle::Effects<Connection>;

/// What is under the lock.
#[derive(Default)]
struct State {
    table: Table,
    logs: BTreeMap<Key, Log>,
}

/// What each extension offers, by its id. Those that offer nothing of a kind are left out.
#[derive(Default)]
struct Offered {
    tools: Vec<(String, Vec<SharedTool>)>,
    commands: Vec<(String, Vec<CommandDeclaration>)>,
    canvases: Vec<(String, Vec<CanvasDeclaration>)>,
}

impl Offered {
    fn of(table: &Table) -> Self {
        fn add<T: Clone>(all: &mut Vec<(String, Vec<T>)>, id: &str, offered: &[T]) {
            if !offered.is_empty() {
                all.push((id.to_owned(), offered.to_vec()));
            }
        }
        let mut all = Self::default();
        for extension in table.values().filter(|extension| extension.is_loaded()) {
            let info = extension.info();
            add(&mut all.tools, &info.id, &info.tools);
            add(&mut all.commands, &info.id, &info.commands);
            add(&mut all.canvases, &info.id, &info.canvases);
        }
        all
    }
}

/// The extensions as they are now, to be read. Nobody changes them meanwhile, so whoever holds this must not wait.
pub struct Locked<'a>(MutexGuard<'a, State>);

impl Deref for Locked<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.0.table
    }
}

/// All extensions of a session.
pub struct Extensions {
    state: Mutex<State>,
    /// What was offered when it was last announced. Taken before the state.
    offered: Mutex<Offered>,
    /// Counts up whenever an extension's status changes, or a load has less to do.
    changed: watch::Sender<u64>,
    /// Where logs are kept beside the memory.
    log_files: Option<LogFiles>,
}

impl Extensions {
    pub fn new(log_files: Option<LogFiles>) -> Self {
        Self {
            state: Mutex::default(),
            offered: Mutex::default(),
            changed: watch::Sender::new(0),
            log_files,
        }
    }

    /// The state. No code of others runs under the lock, and nothing in it waits.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The extensions as they are now.
    pub fn lock(&self) -> Locked<'_> {
        Locked(self.state())
    }

    /// Makes a transition. Returns what the session has to do about it, now that the lock is free; only
    /// `Session::carry_out` does it.
    pub fn apply<T>(&self, transition: impl FnOnce(&mut Table) -> (T, Effects)) -> (T, Effects) {
        let mut state = self.state();
        let (value, effects) = transition(&mut state.table);
        let rest = effects.into_iter().filter_map(|effect| self.settle(&mut state, effect));
        (value, rest.collect())
    }

    /// Makes a transition that has no effects.
    pub fn update<T>(&self, transition: impl FnOnce(&mut Table) -> T) -> T {
        transition(&mut self.state().table)
    }

    /// Does at once what has to be done in the order of the transitions, and does not wait; returns anything else.
    fn settle(&self, state: &mut State, effect: Effect) -> Option<Effect> {
        match effect {
            Effect::Log(key, level, text) => self.write(state, &key, level, text),
            Effect::Subscribe(peer, filter) => {
                if let Some(load) = state.table.load(&peer) {
                    load.payload().subscriber.change(|it| *it = filter);
                }
            }
            Effect::Forgotten(key) => drop(state.logs.remove(&key)),
            other => return Some(other),
        }
        None
    }

    fn write(&self, state: &mut State, key: &Key, level: LogLevel, text: String) {
        let Some(extension) = state.table.get(key) else { return };
        let line = state.logs.entry(key.clone()).or_default().push(LogRecord { level, text });
        if let (Some(files), Some(file)) = (&self.log_files, &extension.info().log_file) {
            files.write(file, &line);
        }
    }

    /// Says that an extension's status changed.
    pub fn announce(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// Waits until something holds; asked again whenever something was announced.
    pub async fn until(&self, mut holds: impl FnMut(&Table) -> bool) {
        self.until_done(|table| holds(table)).await;
    }

    /// Waits until a replaced load is told to stop, because nobody needs it any more.
    pub async fn drained(&self, peer: &Peer) {
        self.until_done(|table| table.stop_if_drained(peer)).await;
    }

    /// Tries something until it is done; again whenever something was announced.
    async fn until_done(&self, mut attempt: impl FnMut(&mut Table) -> bool) {
        let mut changed = self.changed.subscribe();
        while !attempt(&mut self.state().table) {
            // The sender lives as long as we do.
            let _ = changed.changed().await;
        }
    }

    /// Waits until no extension is starting.
    pub async fn settled(&self) {
        self.until(|table| !table.values().any(Extension::is_starting)).await;
    }

    /// Every extension, by scope and name.
    pub fn list(&self) -> Vec<ExtensionInfo> {
        self.lock().values().map(|extension| extension.info().clone()).collect()
    }

    /// The log of an extension.
    pub fn log(&self, info: &ExtensionInfo) -> Vec<LogLine> {
        let state = self.state();
        let found = state.table.iter().find(|(_, extension)| extension.info().path == info.path);
        let log = found.and_then(|(key, _)| state.logs.get(key));
        log.map(Log::lines).unwrap_or_default()
    }

    /// Adds to an extension's log.
    pub fn note(&self, key: &Key, level: LogLevel, text: impl Into<String>) {
        self.write(&mut self.state(), key, level, text.into());
    }

    /// Counts a call that has ended.
    pub fn count(&self, key: &Key, took: Duration, failed: bool) {
        self.update(|table| table.called(key, took, failed));
    }

    /// Which kinds of offers changed since it was last asked: tools, commands, canvases.
    pub fn changed_offers(&self) -> [bool; 3] {
        let mut before = self.offered.lock();
        // Schemas are long: they are shared, and compared when the extensions are not locked any more.
        let now = Offered::of(&self.lock());
        let changed = [
            // The session's own tools for canvases come with the first and go with the last.
            before.tools != now.tools || before.canvases.is_empty() != now.canvases.is_empty(),
            before.commands != now.commands,
            before.canvases != now.canvases,
        ];
        *before = now;
        changed
    }
}
