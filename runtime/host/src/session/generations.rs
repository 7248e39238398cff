//! One load of an extension takes over from another, or fails to.

use std::sync::Arc;

use tenon_protocol::layers::Layers;
use tenon_protocol::limits::DRAIN_CALLS_DEADLINE;
use tenon_protocol::limits::STOP_DEADLINE;
use tenon_protocol::message::EndReason;
use tenon_protocol::message::LoadedFile;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::ReadyReport;

use super::Session;
use super::ports;
use crate::extension::LoadError;
use crate::extension::Registration;
use crate::extension::Status;
use crate::extensions::Extension;
use crate::extensions::Key;
use crate::extensions::Load;
use crate::extensions::Peer;
use crate::extensions::Slot;
use crate::extensions::State;
use crate::supervision::Verdict;

/// Replaced loads of one extension that are kept for those who began before they were replaced. Beyond
/// these, an old load is kept only for calls it has.
const MAX_KEPT: usize = 4;

impl Session {
    /// The process of a load exists.
    pub(super) fn started(&self, peer: &Peer, pid: u32, layers: Layers) {
        let mut state = self.0.extensions.lock();
        let Some((extension, slot)) = state.of(peer) else { return };
        extension.mark(&format!("generation {} runs in process {pid}", peer.generation));
        match slot {
            Slot::Current => {
                extension.info.pid = Some(pid);
                extension.info.sandbox = Some(layers);
                extension.current.iter_mut().for_each(|load| load.pid = Some(pid));
            }
            Slot::Next => {
                if let Some(load) = &mut extension.next {
                    (load.pid, load.layers) = (Some(pid), Some(layers.clone()));
                }
            }
            Slot::Draining(_) => {}
        }
    }

    /// A load has joined and run as far as it can: it serves from now on.
    pub(super) fn became_ready(&self, peer: &Peer, report: ReadyReport) {
        let mut has_failed = false;
        let replaced = {
            let mut state = self.0.extensions.lock();
            let replaced = match state.of(peer).map(|(_, slot)| slot) {
                Some(Slot::Current) => None,
                Some(Slot::Next) => match promote(&mut state, &peer.key) {
                    Ok(replaced) => replaced,
                    Err((newcomer, error)) => {
                        drop(state);
                        return self.reject(&peer.key, newcomer, error);
                    }
                },
                Some(Slot::Draining(_)) | None => return,
            };
            // Under the same lock, so that nobody takes it for one that still has to join.
            if let Some((extension, Slot::Current)) = state.of(peer) {
                if let Some(load) = &mut extension.current {
                    load.ready_at = Some(std::time::Instant::now());
                }
                let ms = report.wall_us as f64 / 1000.0;
                extension
                    .mark(&format!("generation {} is ready after {ms:.1} ms", peer.generation));
                extension.changed = false;
                extension.info.ready = Some(report);
                extension.info.engine = Some(report.engine);
                extension.info.status = Status::Running;
                // What is on disk may wait for the person, who has to see that for as long as it does.
                if extension.held.is_none() {
                    extension.info.error = None;
                }
                // What failed before its files changed is over once the changed files run, not earlier.
                extension.info.failures = extension.record.failures;
                has_failed = extension.record.failures > 0;
            }
            replaced
        };
        if has_failed {
            self.forgive_later(peer);
        }
        if let Some(replaced) = replaced {
            // What it had open is served by nobody any more.
            self.canvases_unavailable(&peer.key);
            self.drain(replaced);
        }
        self.0.extensions.announce();
        self.announce_offers();
    }

    /// Forgets that an extension has failed, if this load of it runs well for long enough.
    fn forgive_later(&self, peer: &Peer) {
        let (session, peer) = (self.downgrade(), peer.clone());
        let healthy_after = self.0.options.timing.healthy_after;
        self.0.runtime.spawn(async move {
            tokio::time::sleep(healthy_after).await;
            let Some(session) = session.upgrade() else { return };
            if let Some((extension, Slot::Current)) = session.0.extensions.lock().of(&peer) {
                extension.forget_failures();
            }
        });
    }

    /// A load was ready but cannot take over: it is ended, and the one before goes on.
    fn reject(&self, key: &Key, newcomer: Box<Load>, error: String) {
        if let Some(extension) = self.0.extensions.lock().map.get_mut(key) {
            extension.note(LogLevel::Error, error.clone());
            extension.blame(LoadError::new(error, None));
        }
        self.0.bus.remove(&newcomer.subscriber);
        self.0.runtime.spawn(async move {
            newcomer.isolate.stop().await;
        });
        self.0.extensions.announce();
        self.announce_offers();
    }

    /// Lets a load that was replaced finish its calls, and ends it.
    pub(super) fn drain(&self, peer: Peer) {
        let session = Arc::downgrade(&self.0);
        self.0.runtime.spawn(async move {
            let Some(session) = session.upgrade().map(Self) else { return };
            let drained = session.0.extensions.until(|state| is_drained(state, &peer));
            tokio::select! {
                _ = tokio::time::timeout(DRAIN_CALLS_DEADLINE, drained) => {}
                () = session.ending() => {}
            }
            session.end_load(&peer).await;
        });
    }

    /// Ends a load of an extension.
    pub(super) async fn end_load(&self, peer: &Peer) {
        let stopping = {
            let mut state = self.0.extensions.lock();
            state.load(peer).map(|load| {
                load.is_stopping = true;
                (load.isolate.stop(), load.last_word())
            })
        };
        let Some((stop, mut last_word)) = stopping else { return };
        stop.await;
        // One that hangs in a system call has not said its last word; nobody waits for it.
        let _ = tokio::time::timeout(STOP_DEADLINE, last_word.wait_for(|ended| *ended)).await;
        if let Some((extension, Slot::Current)) = self.0.extensions.lock().of(peer) {
            extension.fail_start();
        }
        self.forget(peer);
        self.0.extensions.announce();
    }

    /// Takes an extension out of service; the calls it has are finished. It stays listed with the given
    /// status and reason, or is forgotten when its last load has ended.
    pub(super) fn retire(&self, key: &Key, stays: Option<(Status, LoadError)>) {
        match self.withdraw(key, stays) {
            Some(peer) => self.drain(peer),
            None => self.forget_if_gone(key),
        }
        self.0.extensions.announce();
        self.announce_offers();
    }

    /// Takes back what an extension offers. Returns the load that served; it still has to be ended.
    pub(super) fn withdraw(&self, key: &Key, stays: Option<(Status, LoadError)>) -> Option<Peer> {
        let (replaced, overtaken) = {
            let mut state = self.0.extensions.lock();
            state.epoch += 1;
            let epoch = state.epoch;
            let extension = state.map.get_mut(key)?;
            extension.record.plan += 1;
            extension.record.returns = None;
            let overtaken = extension.next.take();
            let replaced = extension.current.take().map(|mut load| {
                load.serves.1 = Some(epoch);
                load.subscriber.change(|filter| *filter = crate::events::Filter::default());
                let peer = Peer { key: key.clone(), generation: load.generation };
                extension.draining.push(load);
                peer
            });
            match stays {
                Some((status, error)) => extension.info.fail(status, error),
                None => {
                    extension.info.status = Status::Draining;
                    extension.info.register(&Registration::default());
                }
            }
            // Another of the same name may have what one that did not serve never had.
            let id = extension.info.id.clone();
            if replaced.is_some() {
                state.registry.remove(&id);
            }
            (replaced, overtaken)
        };
        if let Some(load) = overtaken {
            self.0.bus.remove(&load.subscriber);
        }
        if replaced.is_some() {
            self.canvases_unavailable(key);
        }
        replaced
    }

    /// An isolate has ended.
    pub(super) fn ended(&self, peer: &Peer, reason: EndReason) {
        let process_died = match &reason {
            EndReason::ProcessDied { with_zygote, .. } => Some(*with_zygote),
            _ => None,
        };
        let on_purpose = matches!(reason, EndReason::Exited { code: 0, joined: true });
        let mut error = LoadError::from_end(reason);
        let session_ends = self.facts().ended;
        let plan = {
            let mut state = self.0.extensions.lock();
            let Some((extension, slot)) = state.of(peer) else { return };
            // Only a session that ends tells the load that serves to stop.
            let unasked = slot == Slot::Current && extension.info.status == Status::Running;
            if error.is_none() && unasked && !session_ends {
                error = Some(LoadError::new("it lost its connection to the session", None));
            }
            let text = error.as_ref().map_or("it was told to", |error| &error.what.message);
            extension.mark(&format!("generation {} ended: {text}", peer.generation));
            if let Some(error) = &error {
                extension.note(LogLevel::Error, error.what.to_string());
            }
            match slot {
                Slot::Draining(_) => Plan::Nothing,
                Slot::Next => extension.next_failed(error),
                Slot::Current => {
                    let timing = self.0.options.timing;
                    extension.current_failed(error, process_died, on_purpose, &timing)
                }
            }
        };
        self.forget(peer);
        self.0.extensions.announce();
        self.announce_offers();
        self.carry_out(&peer.key, plan);
    }

    /// Forgets a load that has ended, or that nobody waits for any more.
    pub(super) fn forget(&self, peer: &Peer) {
        let (load, served) = {
            let mut state = self.0.extensions.lock();
            let Some((extension, slot)) = state.of(peer) else { return };
            let load = match slot {
                Slot::Current => extension.current.take(),
                Slot::Next => extension.next.take(),
                Slot::Draining(index) => Some(extension.draining.remove(index)),
            };
            if slot == Slot::Current {
                let id = extension.info.id.clone();
                state.registry.remove(&id);
            }
            (load, slot == Slot::Current)
        };
        if let Some(load) = load {
            load.say_last_word();
            self.0.bus.remove(&load.subscriber);
        }
        if served {
            self.canvases_unavailable(&peer.key);
        }
        self.forget_if_gone(&peer.key);
    }

    /// Forgets an extension that was taken away, once nothing of it is left.
    fn forget_if_gone(&self, key: &Key) {
        let mut state = self.0.extensions.lock();
        let gone = state.map.get(key).is_some_and(|extension| {
            extension.info.status == Status::Draining
                && extension.draining.is_empty()
                && !extension.is_loaded()
        });
        if gone {
            state.map.remove(key);
        }
    }

    /// Takes down which files a load was made from.
    pub(super) fn loaded_files(&self, peer: &Peer, files: Vec<LoadedFile>) {
        let mut outside = Vec::new();
        {
            let mut state = self.0.extensions.lock();
            let Some((extension, slot)) = state.of(peer) else { return };
            // Files of a load that was overtaken say nothing about the newest.
            let newest = extension.next.is_none() || slot == Slot::Next;
            if !newest || matches!(slot, Slot::Draining(_)) {
                return;
            }
            let folder = std::fs::canonicalize(&extension.found.folder).unwrap_or_default();
            for file in files {
                if !file.is_package {
                    extension.files.insert(file.path.clone(), file.hash.clone());
                }
                if !file.path.starts_with(&folder) {
                    extension.outside.insert(file.path.clone(), file.hash.clone());
                    outside.push(file);
                }
            }
            extension.info.files = extension.files.keys().cloned().collect();
        }
        if self.note_outside(&peer.key, outside) {
            self.hold_again(&peer.key);
        }
        self.watch_files();
    }
}

/// What is to be done after an isolate has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Nothing,
    /// It is started again: at once, or after a pause.
    Restart(std::time::Duration, u64),
    /// If the load that serves has the port that the new one wants, it is ended first, and then the new one
    /// is tried again.
    MakeRoom {
        port: u16,
        number: u64,
    },
}

impl Extension {
    /// The load that was to replace another has ended.
    fn next_failed(&mut self, error: Option<LoadError>) -> Plan {
        let Some(error) = error else { return Plan::Nothing };
        let port = ports::wanted(&error.what.message);
        self.blame(error);
        let (Some(port), Some(current)) = (port, &self.current) else { return Plan::Nothing };
        if !current.pid.is_some_and(|pid| ports::listens(pid, port)) {
            return Plan::Nothing;
        }
        self.record.plan += 1;
        let number = self.record.plan;
        // Whoever waits for the outcome goes on waiting; unless it may be one of the calls that have to end
        // before.
        self.room = current.calls.is_empty().then_some(number);
        Plan::MakeRoom { port, number }
    }

    /// It counts as one that has not failed.
    pub(super) fn forget_failures(&mut self) {
        self.record.failures = 0;
        self.info.failures = 0;
    }

    /// The load that served, or was to, was told to stop: if it was to, it never will.
    fn fail_start(&mut self) {
        if self.info.status == Status::Starting {
            let error = LoadError::new("it was stopped before it had joined", None);
            self.info.fail(Status::Failed, error);
        }
    }

    /// The load that served, or was the first to, has ended.
    fn current_failed(
        &mut self,
        error: Option<LoadError>,
        process_died: Option<bool>,
        on_purpose: bool,
        timing: &crate::supervision::Timing,
    ) -> Plan {
        let was_ready = self.info.status == Status::Running;
        let ready_at = self.current.as_ref().and_then(|load| load.ready_at);
        let Some(error) = error else {
            self.fail_start();
            return Plan::Nothing;
        };
        self.info.fail(Status::Failed, error);
        self.record.plan += 1;
        self.record.returns = None;
        if process_died == Some(true) {
            self.record.restarts += 1;
            let pause = self.record.zygote_died();
            self.record.returns = Some(pause);
            return Plan::Restart(pause, self.record.plan);
        }
        // One that never ran is not tried again until its files change, unless it was on its way back.
        let tried_before = self.record.failures > 0;
        if on_purpose || (!was_ready && !tried_before && process_died.is_none()) {
            self.info.failures = self.record.failures;
            return Plan::Nothing;
        }
        let verdict = if self.next.is_some() {
            // What is on its way was forgiven before it was started: this failure is not its own.
            Verdict::Restart(timing.restart_after)
        } else {
            self.record.failed(ready_at, timing)
        };
        self.info.failures = self.record.failures;
        match verdict {
            Verdict::Restart(pause) => {
                self.record.restarts += 1;
                self.record.returns = (pause <= timing.return_patience).then_some(pause);
                self.mark(&format!("it is started again in {pause:?}"));
                Plan::Restart(pause, self.record.plan)
            }
            Verdict::SwitchOff => {
                let failures = self.record.failures;
                let message = format!("it failed {failures} times in a row and was switched off");
                let hint = format!("when it is mended, `tenon ext enable {}`", self.info.name);
                let mut error = LoadError::new(message, hint);
                if let Some(last) = self.info.last_error.take() {
                    error.what.message =
                        format!("{}; last: {}", error.what.message, last.what.message);
                    error.what.file = last.what.file;
                    error.what.line = last.what.line;
                    error.what.column = last.what.column;
                    error.what.source_line = last.what.source_line;
                    error.what.stack = last.what.stack;
                }
                self.mark(&error.what.message.clone());
                self.info.fail(Status::Disabled, error);
                Plan::Nothing
            }
        }
    }
}

/// Puts the load that is ready in the place of the one that serves. Tools, hooks, commands and canvases
/// change at once, under the lock. Returns the load that was replaced, or the newcomer that cannot take over.
fn promote(state: &mut State, key: &Key) -> Result<Option<Peer>, (Box<Load>, String)> {
    let leaving = state.leaving(key);
    let State { map, registry, epoch, .. } = state;
    let Some(extension) = map.get_mut(key) else { return Ok(None) };
    let Some(mut load) = extension.next.take() else { return Ok(None) };
    let path = extension.info.path.clone();
    let registered = registry.register(&extension.info.id, &path, &load.offers.tools, &leaving);
    match registered {
        Ok(warnings) => {
            for text in warnings {
                extension.note(LogLevel::Warning, text);
            }
        }
        Err(error) => return Err((Box::new(load), error)),
    }
    *epoch += 1;
    load.serves = (*epoch, None);
    extension.info.register(&load.offers);
    extension.had = load.offers.tools.iter().map(|tool| tool.name.clone()).collect();
    extension.info.generation = load.generation;
    extension.info.hash = load.hash.clone();
    extension.info.pid = load.pid;
    extension.info.sandbox = load.layers.clone();
    extension.info.path = extension.found.entry.clone().unwrap_or_else(|_| key.2.clone());
    let wanted = load.wanted.clone();
    let replaced = extension.current.take().map(|mut old| {
        old.serves.1 = Some(*epoch);
        old.subscriber.change(|filter| *filter = crate::events::Filter::default());
        let peer = Peer { key: key.clone(), generation: old.generation };
        extension.draining.push(old);
        peer
    });
    load.subscriber.change(|filter| *filter = wanted);
    let names: Vec<String> = load.offers.tools.iter().map(|tool| tool.name.clone()).collect();
    extension.current = Some(load);
    for (_, other) in map.iter_mut().filter(|(_, other)| leaving.contains(&other.info.id)) {
        other.give_up_tools(&names);
    }
    Ok(replaced)
}

/// Whether nobody needs a replaced load any more.
fn is_drained(state: &mut State, peer: &Peer) -> bool {
    let newer = state.map.get(&peer.key).map_or(0, |extension| {
        extension.draining.iter().filter(|load| load.generation > peer.generation).count()
    });
    let Some(load) = state.load(peer) else { return true };
    if load.is_busy() {
        return false;
    }
    let until = load.serves.1.unwrap_or_default();
    let may_be_asked = load.has_tool_hooks() && newer < MAX_KEPT;
    if may_be_asked && state.is_viewed_before(until) {
        return false;
    }
    // Under the same lock as the check: whoever found this load in an earlier view and calls it from now on is sent to
    // the newest instead.
    if let Some(load) = state.load(peer) {
        load.is_stopping = true;
    }
    true
}
