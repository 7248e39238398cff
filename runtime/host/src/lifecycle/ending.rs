//! Loads end: because they failed, because they were replaced, or because their extension is taken out of service.

use std::time::Instant;

use tenon_protocol::message::EndReason;
use tenon_protocol::message::LogLevel;

use super::Effect;
use super::Effects;
use super::Extension;
use super::Key;
use super::Payload;
use super::Peer;
use super::Slot;
use super::Stage;
use super::Table;
use super::effects::mark;
use super::record::Verdict;
use super::taken_port::taken_port;
use crate::events::Filter;
use crate::extension::LoadError;
use crate::extension::Registration;
use crate::extension::Status;
use crate::supervision::Timing;

/// How an isolate ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    /// What went wrong; nothing if it was told to stop.
    pub error: Option<LoadError>,
    /// Whether its process died, and if so whether with the zygote.
    pub process_died: Option<bool>,
    /// It ended itself, and says that nothing went wrong.
    pub on_purpose: bool,
    /// The port that it wanted and that is taken.
    pub wanted_port: Option<u16>,
    /// The session ends, and tells loads to stop that serve.
    pub session_ends: bool,
}

impl End {
    /// An end for this reason.
    pub fn new(reason: EndReason, session_ends: bool) -> Self {
        let process_died = match &reason {
            EndReason::ProcessDied { with_zygote, .. } => Some(*with_zygote),
            _ => None,
        };
        let on_purpose = matches!(reason, EndReason::Exited { code: 0, joined: true });
        let error = LoadError::from_end(reason);
        let wanted_port = error.as_ref().and_then(|error| taken_port(&error.what.message));
        Self { error, process_died, on_purpose, wanted_port, session_ends }
    }
}

/// What remains of an extension that is taken out of service.
#[derive(Debug, Clone, PartialEq)]
pub enum Stays {
    /// It stays listed, with this status and reason.
    Listed(Status, LoadError),
    /// It is forgotten when its last load has ended.
    No,
}

impl<L: Payload> Table<L> {
    /// An isolate has ended.
    pub fn ended(&mut self, peer: &Peer, end: End, now: Instant, timing: &Timing) -> Effects<L> {
        let key = &peer.key;
        let Some((extension, slot)) = self.of(peer) else { return Effects::new() };
        let End { mut error, process_died, on_purpose, wanted_port, session_ends } = end;
        // Only a session that ends tells the load that serves to stop.
        let unasked = slot == Slot::Current && extension.info.status == Status::Running;
        if error.is_none() && unasked && !session_ends {
            error = Some(LoadError::new("it lost its connection to the session", None));
        }
        let text = error.as_ref().map_or("it was told to", |error| &error.what.message);
        let mut effects =
            Effects::from([mark(key, &format!("generation {} ended: {text}", peer.generation))]);
        if let Some(error) = &error {
            effects.push(Effect::Log(key.clone(), LogLevel::Error, error.what.to_string()));
        }
        let mut logs = Effects::new();
        let plan = match slot {
            Slot::Draining(_) => None,
            Slot::Next => extension.next_failed(key, error, wanted_port),
            Slot::Current => {
                let end = Failure { error, process_died, on_purpose };
                extension.current_failed(key, end, now, timing, &mut logs)
            }
        };
        effects.extend(logs);
        effects.extend(self.take(peer));
        effects.extend([Effect::Changed, Effect::OffersChanged]);
        effects.extend(plan);
        effects
    }

    /// Whether the process that was asked about listens on the port.
    pub fn port_answered(&mut self, key: &Key, port: u16, plan: u64, listens: bool) -> Effects<L> {
        if !self.is_planned(key, plan) {
            return Effects::new();
        }
        if listens && self.current(key).is_some() {
            return Effects::from([Effect::MakeRoom { key: key.clone(), port, plan }]);
        }
        self.port_kept(key, plan)
    }

    /// The port is another's: nobody is helped if the load that serves ends, and nobody waits for it.
    pub fn port_kept(&mut self, key: &Key, plan: u64) -> Effects<L> {
        if let Some(extension) = self.extensions.get_mut(key).filter(|it| it.room == Some(plan)) {
            extension.room = None;
        }
        Effects::from([Effect::Changed])
    }

    /// Takes back what an extension offers. Returns the load that served, which still has to be ended.
    pub fn withdraw(&mut self, key: &Key, stays: Stays) -> (Option<Peer>, Effects<L>) {
        self.epoch += 1;
        let epoch = self.epoch;
        let Some(extension) = self.extensions.get_mut(key) else { return (None, Effects::new()) };
        extension.record.overtake();
        extension.begun = None;
        let overtaken = extension.next.take();
        let replaced = extension.replace_current(key, epoch);
        match stays {
            Stays::Listed(status, error) => extension.info.fail(status, error),
            Stays::No => {
                extension.info.status = Status::Draining;
                extension.info.register(&Registration::default());
            }
        }
        let mut effects = Effects::new();
        effects.extend(overtaken.map(|load| Effect::Dropped(Box::new(load))));
        if let Some(replaced) = &replaced {
            self.names.remove(key);
            effects.push(Effect::Subscribe(replaced.clone(), Filter::default()));
            effects.push(Effect::CanvasesGone(key.clone()));
        }
        (replaced, effects)
    }

    /// Takes an extension out of service; the calls it has are finished.
    pub fn retire(&mut self, key: &Key, stays: Stays) -> Effects<L> {
        let (replaced, mut effects) = self.withdraw(key, stays);
        match replaced {
            Some(peer) => effects.push(Effect::Drain(peer)),
            None => effects.extend(self.forget_if_gone(key)),
        }
        effects.extend([Effect::Changed, Effect::OffersChanged]);
        effects
    }

    /// A first load that has not joined yet is not worth waiting for once its files have changed.
    pub fn give_up_start(&mut self, key: &Key) -> Effects<L> {
        let starts = self.current(key).is_some_and(|load| load.ready_at.is_none());
        let peer = self.current_peer(key).filter(|_| starts);
        peer.map(|peer| self.take(&peer)).unwrap_or_default()
    }

    /// A load is told to stop: what to tell it with.
    pub fn stopping(&mut self, peer: &Peer) -> Option<&L> {
        let load = self.load_mut(peer)?;
        load.stage = Stage::Stopping;
        Some(&load.payload)
    }

    /// A load was told to stop, and has ended or is not waited for any longer.
    pub fn stopped(&mut self, peer: &Peer) -> Effects<L> {
        if let Some((extension, Slot::Current)) = self.of(peer) {
            extension.fail_start();
        }
        let mut effects = self.take(peer);
        effects.push(Effect::Changed);
        effects
    }

    /// The session ends, and no plan is carried out any more. Returns every load there is.
    pub fn all_end(&mut self) -> Vec<Peer> {
        let loads = self.extensions.iter_mut().flat_map(|(key, extension)| {
            extension.record.overtake();
            let peer = |generation| Peer { key: key.clone(), generation };
            extension.loads().map(|load| peer(load.generation)).collect::<Vec<_>>()
        });
        loads.collect()
    }
}

/// How the load that serves ended.
struct Failure {
    error: Option<LoadError>,
    process_died: Option<bool>,
    on_purpose: bool,
}

impl<L: Payload> Extension<L> {
    /// The load that was to replace another has ended.
    fn next_failed(
        &mut self,
        key: &Key,
        error: Option<LoadError>,
        wanted_port: Option<u16>,
    ) -> Option<Effect<L>> {
        self.blame(error?);
        let port = wanted_port?;
        let pid = self.current.as_ref()?.pid?;
        let plan = self.record.overtake();
        // Whoever waits for the outcome goes on waiting; unless it may be one of the calls that have to end before.
        self.room = self.current.as_ref().is_some_and(|load| !load.is_called()).then_some(plan);
        Some(Effect::CheckPort { key: key.clone(), pid, port, plan })
    }

    /// The load that served, or was the first to, has ended.
    fn current_failed(
        &mut self,
        key: &Key,
        end: Failure,
        now: Instant,
        timing: &Timing,
        logs: &mut Effects<L>,
    ) -> Option<Effect<L>> {
        let was_ready = self.info.status == Status::Running;
        let ready_at = self.current.as_ref().and_then(|load| load.ready_at);
        let Some(error) = end.error else {
            self.fail_start();
            return None;
        };
        self.info.fail(Status::Failed, error);
        let plan = self.record.overtake();
        let restart = |after| Some(Effect::Restart { key: key.clone(), after, plan });
        if end.process_died == Some(true) {
            let pause = self.record.zygote_died(now);
            self.record.restarts_after(pause, true);
            return restart(pause);
        }
        // One that never ran is not tried again until its files change, unless it was on its way back.
        let tried_before = self.record.failures() > 0;
        if end.on_purpose || (!was_ready && !tried_before && end.process_died.is_none()) {
            self.info.failures = self.record.failures();
            return None;
        }
        let verdict = if self.next.is_some() {
            // What is on its way was forgiven before it was started: this failure is not its own.
            Verdict::Restart(timing.restart_after)
        } else {
            self.record.failed(ready_at, now, timing)
        };
        self.info.failures = self.record.failures();
        match verdict {
            Verdict::Restart(pause) => {
                self.record.restarts_after(pause, pause <= timing.return_patience);
                logs.push(mark(key, &format!("it is started again in {pause:?}")));
                restart(pause)
            }
            Verdict::SwitchOff => {
                let error = self.given_up();
                logs.push(mark(key, &error.what.message));
                self.info.fail(Status::Disabled, error);
                None
            }
        }
    }

    /// It failed too often.
    fn given_up(&self) -> LoadError {
        let failures = self.record.failures();
        let message = format!("it failed {failures} times in a row and was switched off");
        let hint = format!("when it is mended, `tenon ext enable {}`", self.info.name);
        let mut error = LoadError::new(message, hint);
        if let Some(last) = &self.info.last_error {
            let message = format!("{}; last: {}", error.what.message, last.what.message);
            error.what = last.what.clone();
            error.what.message = message;
        }
        error
    }
}
