//! Looking at the extensions that serve, and keeping what was found.
//!
//! A chain of hooks, or a tool call with the hooks around it, looks at everything through a [`View`]: it meets the loads that
//! served when it began, all of them, whatever is replaced meanwhile.

use std::time::Duration;

use super::Extension;
use super::Extensions;
use super::Key;
use super::Peer;
use super::Table;
use crate::extension::Hook;
use crate::extension::Registration;
use crate::lifecycle::Epoch;

impl Extensions {
    /// The load of an extension that serves.
    pub fn loaded(&self, id: &str) -> Option<Pinned<'_>> {
        let mut state = self.state();
        let is_it = |extension: &Extension| extension.info().id == id && extension.is_loaded();
        let (key, _) = state.table.iter().find(|(_, extension)| is_it(extension))?;
        let peer = state.table.current_peer(&key.clone())?;
        Some(self.pin(&mut state.table, peer))
    }

    /// Keeps a load for somebody who is about to call it.
    fn pin(&self, table: &mut Table, peer: Peer) -> Pinned<'_> {
        table.pin(&peer);
        Pinned { extensions: self, peer }
    }

    /// What serves now, to be looked at for as long as the view is kept.
    pub fn view(&self) -> View<'_> {
        View { extensions: self, epoch: self.update(Table::open_view) }
    }

    /// The next extension after `after` that has a handler of the given name.
    pub fn next_with_handler(
        &self,
        after: Option<&Key>,
        handler: &str,
    ) -> Option<HandlerTarget<'_>> {
        let mut state = self.state();
        let epoch = state.table.epoch();
        let (peer, (id, deadline)) =
            state.table.find_serving(epoch, after, |extension, load| {
                let has_it = load.offers().handlers.iter().any(|name| name == handler);
                let info = extension.info();
                has_it.then(|| (info.id.clone(), info.limits.handler_deadline()))
            })?;
        Some(HandlerTarget { peer: self.pin(&mut state.table, peer), id, deadline })
    }
}

/// The loads that served at one moment. While it is kept, those with hooks are kept too, for a while.
pub struct View<'a> {
    extensions: &'a Extensions,
    epoch: Epoch,
}

impl<'a> View<'a> {
    /// The next extension after `after`, in the order of hooks, that has a hook.
    pub fn next_with_hook(&self, after: Option<&Key>, hook: Hook) -> Option<HookTarget<'a>> {
        let mut state = self.extensions.state();
        let found = state.table.find_serving(self.epoch, after, |extension, load| {
            let declared = load.offers().hooks.iter().find(|it| it.name == hook.name())?;
            let info = extension.info();
            Some((info.id.clone(), declared.fail_closed, info.limits.hook_deadline()))
        });
        let (peer, (id, fails_closed, deadline)) = found?;
        let peer = self.extensions.pin(&mut state.table, peer);
        Some(HookTarget { peer, id, fails_closed, deadline })
    }

    /// Looks for something in what extensions offer.
    pub fn find<T>(
        &self,
        wanted: impl Fn(&Extension, &Registration) -> Option<T>,
    ) -> Option<(Pinned<'a>, T)> {
        let mut state = self.extensions.state();
        let (peer, found) = state
            .table
            .find_serving(self.epoch, None, |extension, load| wanted(extension, load.offers()))?;
        Some((self.extensions.pin(&mut state.table, peer), found))
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        // A load that was replaced may have waited for this.
        if self.extensions.update(|table| table.close_view(self.epoch)) {
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
        if self.extensions.update(|table| table.unpin(&self.peer)) {
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
