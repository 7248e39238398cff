//! Code that appears or changes while an extension with a smaller grant runs. That extension may have written it, to have
//! it run with more rights than it has itself; so it waits for the person's approval. The kernel protects most places where
//! extensions are, but not those that are not there yet, and not everywhere.

use std::collections::BTreeMap;
use std::path::Path;

use tenon_protocol::message::LogLevel;

use super::Session;
use super::approvals::Approvals;
use super::approvals::identity;
use super::launch::Obstacle;
use super::launch::key_of;
use crate::config::ExtensionConfig;
use crate::discovery;
use crate::discovery::Found;
use crate::discovery::Scope;
use crate::extension::Status;
use crate::extensions::Key;
use crate::extensions::id_of;
use crate::trust;
use crate::trust::TrustStore;

/// Who has run in this session with a restricted grant, and which content of others is not theirs.
#[derive(Default)]
pub struct LargerGrants {
    /// Every restricted extension that was started. One that has ended may have written files before.
    restricted: BTreeMap<Key, ExtensionConfig>,
    /// By extension, the hash of the content it had before any of those that may do less ran, or that was approved since.
    accepted: BTreeMap<Key, String>,
}

impl LargerGrants {
    /// An extension that has run here and may do less than one with the given configuration. Secrets that the person gave
    /// an extension belong to that one alone.
    fn smaller(&self, key: &Key, config: &ExtensionConfig, has_secrets: bool) -> Option<String> {
        let mut others = self.restricted.iter().filter(|(other, _)| *other != key);
        let (smaller, _) = others.find(|(_, it)| has_secrets || !config.is_within(it))?;
        Some(id_of(smaller))
    }
}

impl Session {
    /// An extension is about to be started. If it is the first time and it is restricted, what others have on disk now is
    /// not its work.
    pub(super) fn before_start(&self, key: &Key, config: &ExtensionConfig) {
        if !config.is_restricted() || self.larger_grants().restricted.contains_key(key) {
            return;
        }
        let store = TrustStore::of(&self.0.options.home);
        for found in self.find_all() {
            let other = key_of(&found);
            let known = self.larger_grants().accepted.contains_key(&other);
            if known || self.smaller_than(&found).is_some() || store.held(&found.folder).is_some() {
                continue;
            }
            if let Ok(hash) = trust::content_hash(&found.folder) {
                self.larger_grants().accepted.insert(other, hash);
            }
        }
        self.larger_grants().restricted.insert(key.clone(), config.clone());
    }

    /// Whatever keeps an extension waiting for the person's approval.
    pub(super) fn unapproved(&self, found: &Found) -> Option<Obstacle> {
        let key = key_of(found);
        let store = TrustStore::of(&self.0.options.home);
        let (smaller, held) = (self.smaller_than(found), store.held(&found.folder));
        if smaller.is_none() && held.is_none() {
            return None;
        }
        let who = smaller.as_deref().unwrap_or("an extension");
        let accepted = self.larger_grants().accepted.get(&key).cloned();
        let waits = |why: &str, held: String, review| {
            let message =
                format!("it waits for your approval: {why} while {who} ran, which may do less");
            let hint = format!("`tenon trust --review {}` approves what is in it now", found.name);
            let obstacle = Obstacle::new(Status::Untrusted, message, Some(hint));
            Obstacle { review, held: Some(held), ..obstacle }
        };
        let hash = match trust::content_hash(&found.folder) {
            Ok(hash) => hash,
            Err(error) => {
                let why = format!("its files cannot be read ({error}), and may have changed");
                return Some(waits(&why, error.to_string(), None));
            }
        };
        let before = held.as_ref().and_then(|held| held.before.as_ref());
        if before == Some(&hash)
            || accepted.as_ref() == Some(&hash)
            || store.is_reviewed(&found.folder, &hash)
        {
            if held.is_some() {
                self.complain(&key, store.release(&found.folder));
            }
            self.larger_grants().accepted.insert(key, hash);
            return None;
        }
        // A later session must not run it either.
        self.complain(&key, store.hold(&found.folder, accepted.as_deref()));
        let is_new = accepted.is_none() && before.is_none();
        let why = if is_new { "it appeared" } else { "it changed" };
        Some(waits(why, hash.clone(), Some(hash)))
    }

    /// Accepts the content of an extension that Tenon itself has just written. Whoever asked for it chose its name, not its
    /// code.
    pub(super) fn accept_own_work(&self, folder: &Path) {
        let found = self.find_all().into_iter().find(|found| found.folder == folder);
        if let (Some(found), Ok(hash)) = (found, trust::content_hash(folder)) {
            self.larger_grants().accepted.insert(key_of(&found), hash);
            // It may have been noticed before.
            self.watch_files();
        }
    }

    /// After the last extension has ended: what has changed until then waits in later sessions.
    pub(super) fn hold_what_changed(&self) {
        if self.larger_grants().restricted.is_empty() {
            return;
        }
        let is_free = |found: &Found| found.scope != Scope::Project || self.0.options.trusted;
        for found in discovery::find(&self.0.places, self.0.options.trusted) {
            if is_free(&found) && found.entry.is_ok() {
                // Called for its effect: it records what has to wait.
                let _ = self.unapproved(&found);
            }
        }
    }

    fn smaller_than(&self, found: &Found) -> Option<String> {
        // Most sessions have no restricted extension, and nothing to look up.
        if self.larger_grants().restricted.is_empty() {
            return None;
        }
        let key = key_of(found);
        let config = self.0.config.of(&found.id(), &found.name);
        let has_secrets = Approvals::of(&self.0.options.home).has_any(&identity(&key));
        self.larger_grants().smaller(&key, &config, has_secrets)
    }

    fn complain(&self, key: &Key, written: Result<(), crate::store::StoreError>) {
        if let Err(error) = written {
            self.0.extensions.note(key, LogLevel::Error, error.to_string());
        }
    }

    fn larger_grants(&self) -> std::sync::MutexGuard<'_, LargerGrants> {
        // Every statement leaves it whole, also one that panics.
        self.0.larger_grants.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
