//! Loading extensions, and loading them again: what is on disk becomes what runs.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use serde_json::json;
use tenon_protocol::limits::DRAIN_CALLS_DEADLINE;
use tenon_protocol::message::CallId;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::LogLevel;
use tracing::Instrument;

use super::Loading;
use super::Session;
use super::launch::key_of;
use super::survey::Change;
use super::survey::Surveyed;
use crate::config::Watch;
use crate::extension::LoadError;
use crate::extension::Status;
use crate::extensions::Extension;
use crate::extensions::Key;
use crate::extensions::Peer;
use crate::extensions::Table;
use crate::lifecycle::Load;
use crate::lifecycle::Stage;
use crate::lifecycle::Stays;
use crate::manage::ReloadReport;
use crate::watch::Mode;
use crate::watch::Watcher;

/// How often to look, where changes are noticed by looking.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// How long news of a reload wait for all of it. One extension that hangs does not keep back what the others
/// have to offer.
const ANNOUNCE_AFTER: Duration = Duration::from_millis(250);

/// How long a load may take to say whether it listens on a port. It has it at hand, unless it computes.
const LISTENS_DEADLINE: Duration = Duration::from_secs(10);

/// How often it is looked whether a load that has to make room has finished its calls.
const ROOM_INTERVAL: Duration = Duration::from_millis(20);

/// How long the watcher's list of files is left alone: many loads end at the same time.
const REARM_AFTER: Duration = Duration::from_millis(10);

/// Which extensions are loaded again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    All,
    /// Those whose files have changed, came or went.
    Changed,
}

impl Session {
    /// Finds and starts every extension, and waits until each is running or has failed.
    #[tracing::instrument(level = "info", name = "load", skip_all, fields(session = self.id()))]
    pub async fn load(&self) {
        let loading = Loading::new(self);
        let session = self.clone();
        // Every extension is listed, also when whoever asked goes away.
        let starting = async move { session.start_all().await };
        let started = self.0.runtime.spawn(starting.in_current_span());
        // An error means that it panicked, or that the runtime ends.
        let _ = started.await;
        self.settled().await;
        drop(loading);
    }

    async fn start_all(&self) {
        let _alone = self.0.lifecycle.lock().await;
        if self.facts().ended {
            return;
        }
        let found = self.on_disk(|session| {
            session.settle_baselines();
            session.find_all()
        });
        for found in found.await.unwrap_or_default() {
            self.add(found).await;
        }
        if self.0.options.watch {
            self.begin_watching();
        }
    }

    /// Loads every extension again from what is on disk, each beside its last good load, and waits until each
    /// has taken over or has failed. Calls in flight finish on the load they began with.
    pub async fn reload(&self) -> ReloadReport {
        self.load_again(Which::All).await
    }

    /// The same for those whose files have changed, came or went; the others are left alone.
    pub async fn refresh(&self) -> ReloadReport {
        self.load_again(Which::Changed).await
    }

    async fn load_again(&self, which: Which) -> ReloadReport {
        // What was asked for is done also when whoever asked goes away.
        let session = self.clone();
        let loading = async move { session.load_again_alone(which).await };
        let task = self.0.runtime.spawn(loading.in_current_span());
        task.await.unwrap_or_default()
    }

    #[tracing::instrument(level = "info", name = "reload", skip_all, fields(session = self.id(), which = ?which))]
    async fn load_again_alone(&self, which: Which) -> ReloadReport {
        let mut report = ReloadReport::default();
        let loading = Loading::new(self);
        let started = {
            let _alone = self.0.lifecycle.lock().await;
            let ended = self.facts().ended;
            if ended { Vec::new() } else { self.start_again(which, &mut report).await }
        };
        // Others can be started while we wait: one that hangs must not keep its own correction waiting.
        let ready = |table: &Table| {
            let starts = |key: &Key| table.get(key).is_some_and(Extension::is_starting);
            !started.iter().any(starts)
        };
        let all_ready = async {
            tokio::select! {
                () = self.0.extensions.until(ready) => {}
                () = self.ending() => {}
            }
        };
        let mut all_ready = std::pin::pin!(all_ready);
        let in_time = tokio::time::timeout(ANNOUNCE_AFTER, &mut all_ready).await.is_ok();
        drop(loading);
        if !in_time {
            all_ready.await;
        }
        report.extensions = self.list();
        let table = self.0.extensions.lock();
        for key in &started {
            if let Some(extension) = table.get(key).filter(|it| it.info().error.is_some()) {
                report.failed.push(extension.info().id.clone());
            }
        }
        drop(table);
        self.watch_files();
        report
    }

    /// Starts what is to be loaded again, and takes away what is gone.
    async fn start_again(&self, which: Which, report: &mut ReloadReport) -> Vec<Key> {
        let Some(surveyed) = self.on_disk(Self::survey).await else { return Vec::new() };
        let keys: BTreeSet<Key> = surveyed.iter().map(|it| key_of(&it.found)).collect();
        let gone: Vec<Key> = {
            let table = self.0.extensions.lock();
            let gone = |(key, it): &(&Key, &Extension)| !keys.contains(*key) && !it.leaves();
            table.iter().filter(gone).map(|(key, _)| key.clone()).collect()
        };
        for key in gone {
            report.removed.push(crate::extensions::id_of(&key));
            self.retire(&key, Stays::No);
        }
        let mut started = Vec::new();
        for Surveyed { found, obstacle, change } in surveyed {
            let (key, id) = (key_of(&found), found.id());
            match change {
                Change::None if which == Which::Changed => continue,
                Change::New | Change::None | Change::Content => {}
                Change::StillBlocked => {
                    // It may be another content than the one that was asked about.
                    self.ask_again(&key, obstacle);
                    if self.is_held(&key) {
                        report.waiting.push(id);
                    }
                    continue;
                }
            }
            self.change(|table| {
                table.forgive(&key);
                if change != Change::None {
                    table.changed(&key);
                }
                table.give_up_start(&key)
            });
            // It looks at the extension once more: one that was just started may have changed it.
            let is_started = self.add(found).await;
            let kind = match change {
                _ if self.is_held(&key) => &mut report.waiting,
                Change::New => &mut report.added,
                _ => &mut report.reloaded,
            };
            kind.push(id);
            // The load before may have ended since it was forgiven.
            self.0.extensions.update(|table| table.start_afresh(&key));
            if is_started {
                started.push(key);
            }
        }
        started
    }

    /// Whether what is on disk of an extension waits for the person's approval.
    fn is_held(&self, key: &Key) -> bool {
        self.0.extensions.lock().get(key).is_some_and(|extension| extension.held().is_some())
    }

    /// Waits until no extension is starting, or the session ends.
    async fn settled(&self) {
        tokio::select! {
            () = self.0.extensions.settled() => {}
            () = self.ending() => {}
        }
    }

    /// Starts an extension again after a pause.
    pub(super) fn restart_after(&self, pause: Duration, key: Key, plan: u64) {
        let session = self.downgrade();
        self.0.runtime.spawn(async move {
            tokio::time::sleep(pause).await;
            let Some(session) = session.upgrade() else { return };
            session.restart(&key, plan).await;
        });
    }

    /// Ends the load that serves, if it has the port that the next one wants.
    pub(super) fn make_room_for_next(&self, key: Key, port: u16, plan: u64) {
        let session = self.clone();
        self.0.runtime.spawn(async move {
            tokio::select! {
                () = session.make_room(&key, port, plan) => {}
                () = session.ending() => {}
            }
        });
    }

    /// Starts an extension again, unless something else has happened to it meanwhile.
    async fn restart(&self, key: &Key, plan: u64) {
        // A reload that is under way has its own idea of what to start.
        let _alone = self.0.lifecycle.lock().await;
        if self.facts().ended {
            return;
        }
        let found = {
            let table = self.0.extensions.lock();
            let planned = table.get(key).filter(|it| it.record().plan() == plan && !it.is_loaded());
            planned.map(|extension| extension.found().clone())
        };
        // What speaks against it now may not have when it was first started.
        if let Some(found) = found {
            self.add(found).await;
        }
    }

    /// Ends the load that serves, so that its port is free, and tries the newest again; unless the port is
    /// somebody else's.
    async fn make_room(&self, key: &Key, port: u16, plan: u64) {
        let extensions = &self.0.extensions;
        let is_planned = |plan: u64| extensions.lock().is_planned(key, plan);
        let calls = || -> Vec<CallId> {
            let table = extensions.lock();
            table.current(key).map(|load| load.payload().calls()).unwrap_or_default()
        };
        let begun = calls();
        let deadline = Instant::now() + DRAIN_CALLS_DEADLINE;
        if !self.listens(key, port).await {
            return self.change(|table| table.port_kept(key, plan));
        }
        let reason = "it makes room for the newest, which wants a port that it has";
        let peer = loop {
            let alone = self.0.lifecycle.lock().await;
            if !is_planned(plan) {
                return;
            }
            // One of them may be waiting for a reload, and would keep itself from ending.
            let waits = calls().iter().any(|call| begun.contains(call));
            if !waits || Instant::now() >= deadline {
                extensions.note(key, LogLevel::Info, format!("=== {reason} ==="));
                let starting = Stays::Listed(Status::Starting, LoadError::new(reason, None));
                break self.change_with(|table| table.withdraw(key, starting));
            }
            drop(alone);
            tokio::time::sleep(ROOM_INTERVAL).await;
        };
        if let Some(peer) = peer {
            let done = extensions.until(|table| !table.is_busy(&peer));
            let _ = tokio::time::timeout(DRAIN_CALLS_DEADLINE, done).await;
            self.end_load(&peer).await;
        }
        // A session that ends starts nothing more, and somebody may have decided otherwise meanwhile.
        let _alone = self.0.lifecycle.lock().await;
        if self.facts().ended || !is_planned(plan + 1) {
            return;
        }
        let found = extensions.lock().get(key).map(|it| it.found().clone());
        if let Some(found) = found {
            self.add(found).await;
        }
    }

    /// Whether the load that serves listens on a port. Its process does, but others are in there too; so it is
    /// asked, and one that does not answer keeps what it has.
    async fn listens(&self, key: &Key, port: u16) -> bool {
        let peer = self.0.extensions.lock().current_peer(key);
        let Some(peer) = peer else { return false };
        let payload = port.to_string();
        let extensions = &self.0.extensions;
        let asked = extensions.call_within(&peer, CallKind::Listens, LISTENS_DEADLINE, payload);
        asked.await.is_ok_and(|answer| answer.as_bool() == Some(true))
    }

    /// Watches the places that extensions are in and the files they were loaded from.
    fn begin_watching(&self) {
        let config = &self.0.config.reload;
        let mode = match config.watch {
            Watch::Off => return,
            Watch::Auto => Mode::Native,
            Watch::Poll => Mode::Poll(
                config.poll_ms.map_or(POLL_INTERVAL, |ms| Duration::from_millis(ms.into())),
            ),
        };
        let session = Arc::downgrade(&self.0);
        let on_change = move || {
            if let Some(session) = session.upgrade().map(Self) {
                let runtime = session.0.runtime.clone();
                runtime.spawn(async move { session.report_refresh(session.refresh().await) });
            }
        };
        match Watcher::new(mode, self.debounce(), on_change) {
            Ok(watcher) => {
                // There is one watcher; it is set up once.
                let _ = self.0.watcher.set(watcher);
                self.watch_files();
            }
            Err(error) => {
                let message = format!("changes on disk are not noticed: {error}");
                let data = json!({ "warningType": "not_watching", "message": message });
                self.emit("session.warning", data);
            }
        }
    }

    /// Tells the watcher, soon, what there is to watch now.
    pub(super) fn watch_files(&self) {
        if self.0.watcher.get().is_none() || self.0.rearming.swap(true, Ordering::AcqRel) {
            return;
        }
        let session = self.downgrade();
        self.0.runtime.spawn(async move {
            tokio::time::sleep(REARM_AFTER).await;
            let Some(session) = session.upgrade() else { return };
            session.0.rearming.store(false, Ordering::Release);
            let runtime = session.0.runtime.clone();
            runtime.spawn_blocking(move || session.rearm());
        });
    }

    /// Watches what extensions were loaded from, and sees to it that what has changed since is noticed.
    fn rearm(&self) {
        let Some(watcher) = self.0.watcher.get() else { return };
        let files = || -> BTreeSet<PathBuf> {
            let table = self.0.extensions.lock();
            table.values().flat_map(|extension| extension.files().keys().cloned()).collect()
        };
        let roots: Vec<PathBuf> =
            self.0.places.roots.iter().map(|(_, root)| root.clone()).collect();
        watcher.watch(&roots, files);
        self.report_watching(watcher.problems());
        let surveyed = self.survey();
        let known = self.0.extensions.lock().values().filter(|it| !it.leaves()).count();
        let changed = |it: &Surveyed| match it.change {
            Change::New | Change::Content => true,
            Change::None => false,
            Change::StillBlocked => self.is_to_be_asked(&key_of(&it.found), it.obstacle.as_ref()),
        };
        if surveyed.len() != known || surveyed.iter().any(changed) {
            // It may not be all yet.
            watcher.changed();
        }
    }

    /// Says what cannot be watched as it should, when that is news.
    fn report_watching(&self, problems: Vec<String>) {
        let before = std::mem::replace(&mut self.facts().watch_problems, problems.clone());
        for problem in problems.into_iter().filter(|problem| !before.contains(problem)) {
            let data = json!({ "warningType": "not_watching", "message": problem });
            self.emit("session.warning", data);
        }
    }

    /// How long it must be quiet on disk before changes count.
    fn debounce(&self) -> Duration {
        let configured = self.0.config.reload.debounce_ms;
        configured.map_or(self.0.options.timing.debounce, |ms| Duration::from_millis(ms.into()))
    }

    /// Says what a change on disk has come to, where nobody asked for it.
    fn report_refresh(&self, report: ReloadReport) {
        for info in report.extensions.iter().filter(|info| report.waiting.contains(&info.id)) {
            let Some(error) = &info.error else { continue };
            let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            let data = json!({
                "warningType": "extension_waits_for_approval",
                "message": format!("{}: {}{hint}", info.id, error.what),
                "extensionId": info.id,
            });
            self.emit("session.warning", data);
        }
        for id in &report.failed {
            let Some(info) = report.extensions.iter().find(|info| info.id == *id) else { continue };
            let Some(error) = &info.error else { continue };
            let goes_on = if info.status == Status::Running {
                format!("; generation {} goes on", info.generation)
            } else {
                String::new()
            };
            let message = format!("{id} could not be loaded: {}{goes_on}", error.what);
            let data = json!({
                "warningType": "extension_reload_failed",
                "message": message,
                "extensionId": id,
            });
            self.emit("session.warning", data);
        }
    }
}

impl Session {
    /// Whether a load is not ready yet.
    pub(super) fn is_on_its_way(&self, peer: &Peer) -> bool {
        let table = self.0.extensions.lock();
        let stage = table.load(peer).map(Load::stage);
        stage.is_some_and(|stage| matches!(stage, Stage::Starting | Stage::Joined))
    }

    /// Says in an extension's log that its reload was refused, and why.
    pub(super) fn refuse_reload(&self, peer: &Peer) -> String {
        let text = "an extension cannot reload the extensions while it is itself being loaded";
        self.0.extensions.note(&peer.key, LogLevel::Warning, text);
        text.to_owned()
    }
}
