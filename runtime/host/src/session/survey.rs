//! Looks at what is on disk: what is there, what has become of it since it was loaded, and what keeps it from running.
//!
//! All of this reads files, and hashes them, so none of it is done in an async task: see [`Session::on_disk`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Session;
use super::launch::Obstacle;
use super::launch::key_of;
use crate::discovery;
use crate::discovery::Found;
use crate::extension::Status;
use crate::extension::hash;

/// What has become of an extension since it was last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    None,
    New,
    /// Its files, or whether it may run.
    Content,
    /// It must not run, for the same reason as before.
    StillBlocked,
}

/// An extension on disk, as one look has shown it.
pub(super) struct Surveyed {
    pub found: Found,
    /// What keeps it from being started.
    pub obstacle: Option<Obstacle>,
    pub change: Change,
}

impl Session {
    /// Runs something that reads or writes files where it keeps no task waiting. Nothing is returned if it panicked, or if the
    /// runtime ends.
    pub(super) async fn on_disk<T: Send + 'static>(
        &self,
        look: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let session = self.clone();
        self.0.runtime.spawn_blocking(move || look(&session)).await.ok()
    }

    /// Every extension there is. What must not run takes no name away from others.
    pub(super) fn find_all(&self) -> Vec<Found> {
        discovery::find_where(&self.0.places, &|found| self.takes_its_name(found))
    }

    /// Every extension there is, and what has become of it. Each file is read once.
    pub(super) fn survey(&self) -> Vec<Surveyed> {
        let look = |found: Found| {
            let obstacle = self.obstacle(&found);
            let change = self.what_changed(&found, obstacle.as_ref());
            Surveyed { found, obstacle, change }
        };
        self.find_all().into_iter().map(look).collect()
    }

    /// What has become of an extension since it was last looked at.
    fn what_changed(&self, found: &Found, obstacle: Option<&Obstacle>) -> Change {
        let holds = obstacle.and_then(|obstacle| obstacle.held.as_ref());
        let obstacle = obstacle.map(|obstacle| obstacle.status);
        let (files, before, was_held, serves) = {
            let table = self.0.extensions.lock();
            let known = table.get(&key_of(found));
            let Some(extension) = known.filter(|it| !it.leaves()) else {
                return Change::New;
            };
            let before = (extension.info().status, extension.record().is_given_up());
            if extension.found().entry != found.entry {
                return Change::Content;
            }
            let was_held = extension.held().cloned();
            (extension.files().clone(), before, was_held, extension.is_loaded())
        };
        match (holds, &was_held) {
            (Some(now), Some(before)) if now == before => return Change::StillBlocked,
            // A file beside those that were loaded is of interest only to the next load.
            (Some(_), None) if serves && !files_changed(&files) => return Change::None,
            (None, None) => {}
            _ => return Change::Content,
        }
        match (obstacle, before) {
            // It failed too often, and nobody but its author can do something about it.
            (None, (Status::Disabled, true)) => {}
            (None, (Status::Disabled | Status::Untrusted | Status::Shadowed, _)) => {
                return Change::Content;
            }
            (None, _) => {}
            (Some(now), (before, false)) if now == before => return Change::StillBlocked,
            (Some(_), _) => return Change::Content,
        }
        if files_changed(&files) { Change::Content } else { Change::None }
    }
}

/// Whether files are not what they were when they were loaded.
fn files_changed(files: &BTreeMap<PathBuf, String>) -> bool {
    files.iter().any(|(path, before)| {
        let now = std::fs::read(path).map(|bytes| hash(&bytes)).unwrap_or_default();
        now != *before
    })
}
