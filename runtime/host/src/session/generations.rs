//! One load of an extension takes over from another, or ends.

use std::sync::Arc;

use tenon_protocol::limits::DRAIN_CALLS_DEADLINE;
use tenon_protocol::limits::STOP_DEADLINE;
use tenon_protocol::message::LoadedFile;

use super::Session;
use crate::extensions::Connection;
use crate::extensions::Key;
use crate::extensions::Peer;
use crate::lifecycle::Stays;

impl Session {
    /// Forgets that an extension has failed, if this load of it runs well for long enough.
    pub(super) fn forgive_later(&self, peer: Peer) {
        let session = self.downgrade();
        let healthy_after = self.0.options.timing.healthy_after;
        self.0.runtime.spawn(async move {
            tokio::time::sleep(healthy_after).await;
            let Some(session) = session.upgrade() else { return };
            session.0.extensions.update(|table| table.well_for_long(&peer));
        });
    }

    /// Lets a load that was replaced finish its calls, and ends it.
    pub(super) fn drain(&self, peer: Peer) {
        let session = Arc::downgrade(&self.0);
        self.0.runtime.spawn(async move {
            let Some(session) = session.upgrade().map(Self) else { return };
            tokio::select! {
                _ = tokio::time::timeout(DRAIN_CALLS_DEADLINE, session.0.extensions.drained(&peer)) => {}
                () = session.ending() => {}
            }
            session.end_load(&peer).await;
        });
    }

    /// Ends a load of an extension.
    pub(super) async fn end_load(&self, peer: &Peer) {
        let stopping = self.0.extensions.update(|table| {
            let connection = table.stopping(peer)?;
            Some((connection.isolate.stop(), connection.last_word()))
        });
        let Some((stop, mut last_word)) = stopping else { return };
        stop.await;
        // One that hangs in a system call has not said its last word; nobody waits for it.
        let _ = tokio::time::timeout(STOP_DEADLINE, last_word.wait_for(|ended| *ended)).await;
        self.change(|table| table.stopped(peer));
    }

    /// Takes an extension out of service; the calls it has are finished.
    pub(super) fn retire(&self, key: &Key, stays: Stays) {
        self.change(|table| table.retire(key, stays));
    }

    /// Lets go of a load that has ended, or that nobody waits for any more.
    pub(super) fn drop_load(&self, connection: Connection) {
        connection.say_last_word();
        self.0.bus.remove(&connection.subscriber);
    }

    /// Tells a load to stop that never served.
    pub(super) fn stop_unserved(&self, connection: Connection) {
        self.0.bus.remove(&connection.subscriber);
        self.0.runtime.spawn(async move { connection.isolate.stop().await });
    }

    /// A load says which files it was made from.
    pub(super) fn loaded_files(&self, peer: &Peer, files: Vec<LoadedFile>) {
        self.change(|table| {
            let folder = table.load(peer).map(|load| load.payload().folder.clone());
            folder.map(|folder| table.files_read(peer, files, &folder)).unwrap_or_default()
        });
    }

    /// Watches the files that a load was made from. Those outside of the extension's folder may have kept it from loading.
    pub(super) fn took_files(&self, key: &Key, outside: Vec<LoadedFile>) {
        if self.note_outside(key, outside) {
            self.hold_again(key);
        }
        self.watch_files();
    }
}
