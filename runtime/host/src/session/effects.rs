//! Carries out what the state machine of extensions decides. Every transition that has effects comes past here.

use super::Session;
use super::ports;
use crate::extensions::Effect;
use crate::extensions::Effects;
use crate::extensions::Key;
use crate::extensions::Table;

impl Session {
    /// Makes a transition and does what follows from it.
    pub(super) fn change(&self, transition: impl FnOnce(&mut Table) -> Effects) {
        self.change_with(|table| ((), transition(table)));
    }

    /// The same for a transition that has a result as well.
    pub(super) fn change_with<T>(&self, transition: impl FnOnce(&mut Table) -> (T, Effects)) -> T {
        let (value, effects) = self.0.extensions.apply(transition);
        self.carry_out(effects);
        value
    }

    /// Does what follows from a transition. Nothing is locked, and nothing in here waits.
    fn carry_out(&self, effects: Effects) {
        for effect in effects {
            match effect {
                // Done under the lock, by `Extensions::apply`.
                Effect::Log(..) | Effect::Subscribe(..) | Effect::Forgotten(_) => {}
                Effect::Dropped(load) => self.drop_load(load.into_payload()),
                Effect::Stop(load) => self.stop_unserved(load.into_payload()),
                Effect::Drain(peer) => self.drain(peer),
                Effect::Restart { key, after, plan } => self.restart_after(after, key, plan),
                Effect::CheckPort { key, pid, port, plan } => self.check_port(key, pid, port, plan),
                Effect::MakeRoom { key, port, plan } => self.make_room_for_next(key, port, plan),
                Effect::ForgiveLater(peer) => self.forgive_later(peer),
                Effect::FilesRead { key, outside } => self.took_files(&key, outside),
                Effect::CanvasesGone(key) => self.canvases_unavailable(&key),
                Effect::Changed => self.0.extensions.announce(),
                Effect::OffersChanged => self.announce_offers(),
            }
        }
    }

    /// Finds out whether a process listens on a port. That reads much of `/proc`.
    fn check_port(&self, key: Key, pid: u32, port: u16, plan: u64) {
        let session = self.clone();
        self.0.runtime.spawn_blocking(move || {
            let listens = ports::listens(pid, port);
            session.change(|table| table.port_answered(&key, port, plan, listens));
        });
    }
}
