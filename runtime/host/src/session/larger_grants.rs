//! Code that appears or changes while an extension with a smaller grant runs. That extension may have written it, to have
//! it run with more rights than it has itself; so it waits for the person's approval. The kernel protects most places where
//! extensions are, but not those that are not there yet, and not everywhere.
//!
//! What an extension imports from outside of its folder counts, too. The files of the last load are compared here before the
//! next. Whatever else the next one imports, such as a package that now stands nearer, is met by the loader, which refuses what
//! changed since the smaller grant was there ([`Suspicion`]).

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
#[cfg(target_os = "linux")]
use std::time::Duration;

use tenon_protocol::message::FileTime;
use tenon_protocol::message::LoadedFile;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::Suspicion;

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

/// How often it is looked whether the clock of files has moved on, which it does after ten milliseconds at the latest.
#[cfg(target_os = "linux")]
const TICK: Duration = Duration::from_millis(1);

/// After so many looks somebody sets the clock back, and waiting is of no use.
#[cfg(target_os = "linux")]
const MAX_TICKS: usize = 100;

/// Extensions that are started within so many seconds count as started with the first of them, so that not every one waits for
/// the clock.
const SAME_START_S: i64 = 1;

/// Who has run in this session with a restricted grant, and which content of others is not theirs.
#[derive(Default)]
pub struct LargerGrants {
    /// Every restricted extension that was started, and when. One that has ended may have written files before.
    restricted: BTreeMap<Key, (ExtensionConfig, FileTime)>,
    /// By extension, the content it had before any of those that may do less ran, or that was approved since.
    accepted: BTreeMap<Key, Content>,
}

/// What an extension consists of.
#[derive(Clone)]
struct Content {
    /// The hash of what is in its folder.
    folder: String,
    /// By path, the hash of what is in the files that it imports from elsewhere.
    outside: BTreeMap<PathBuf, String>,
}

impl LargerGrants {
    /// Extensions that have run here and may do less than one with the given configuration, and when they were started.
    /// Secrets that the person gave an extension belong to that one alone.
    fn smaller<'a>(
        &'a self,
        key: &'a Key,
        config: &'a ExtensionConfig,
        has_secrets: bool,
    ) -> impl Iterator<Item = (&'a Key, FileTime)> {
        let others = self.restricted.iter().filter(move |(other, _)| *other != key);
        let smaller = others.filter(move |(_, (it, _))| has_secrets || !config.is_within(it));
        smaller.map(|(other, (_, since))| (other, *since))
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
            if let Ok(folder) = trust::content_hash(&found.folder) {
                let outside = {
                    let state = self.0.extensions.lock();
                    state.map.get(&other).map(|it| it.outside.clone()).unwrap_or_default()
                };
                self.larger_grants().accepted.insert(other, Content { folder, outside });
            }
        }
        let latest = self.larger_grants().restricted.values().map(|(_, since)| *since).max();
        let now = clock(libc::CLOCK_REALTIME).0;
        let same = latest.filter(|latest| (0..=SAME_START_S).contains(&(now - latest.0)));
        let since = same.unwrap_or_else(between_files);
        self.larger_grants().restricted.insert(key.clone(), (config.clone(), since));
    }

    /// Which files from outside a load must not read, because an extension that may do less may have written them.
    pub(super) fn suspicion(&self, key: &Key, config: &ExtensionConfig) -> Option<Suspicion> {
        if self.larger_grants().restricted.is_empty() {
            return None;
        }
        let has_secrets = Approvals::of(&self.0.options.home).has_any(&identity(key));
        let grants = self.larger_grants();
        let (who, since) =
            grants.smaller(key, config, has_secrets).min_by_key(|(_, since)| *since)?;
        let accepted = grants.accepted.get(key).map(|content| content.outside.clone());
        Some(Suspicion { who: id_of(who), since, accepted: accepted.unwrap_or_default() })
    }

    /// Takes down what a load has read from outside of its folder; whether it was refused any of it.
    pub(super) fn note_outside(&self, key: &Key, files: Vec<LoadedFile>) -> bool {
        let is_refused = files.iter().any(|file| file.is_refused);
        if let Some(content) = self.larger_grants().accepted.get_mut(key) {
            for LoadedFile { path, hash, is_refused, .. } in files {
                // What is known of it already was in it before. Nobody has seen what was before in one that was refused.
                let before = if is_refused { String::new() } else { hash };
                content.outside.entry(path).or_insert(before);
            }
        }
        is_refused
    }

    /// Looks again at an extension of which a load was refused something: it waits for the person's approval from now on.
    pub(super) fn hold_again(&self, key: &Key) {
        let (session, key) = (self.clone(), key.clone());
        self.0.runtime.spawn(async move {
            let _alone = session.0.lifecycle.lock().await;
            let found = session.find_all().into_iter().find(|found| key_of(found) == key);
            // If nothing keeps it from running, the file has changed once more, and what watches files sees to it.
            if let Some(found) = found.filter(|found| session.obstacle_status(found).is_some()) {
                session.add(&found);
            }
        });
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
        let folder = match trust::content_hash(&found.folder) {
            Ok(hash) => hash,
            Err(error) => {
                let why = format!("its files cannot be read ({error}), and may have changed");
                return Some(waits(&why, error.to_string(), None));
            }
        };
        let mut outside = held.as_ref().map(|held| held.outside.clone()).unwrap_or_default();
        outside.extend(accepted.iter().flat_map(|content| content.outside.clone()));
        let changed = trust::changed(&outside);
        let hash = trust::with_outside(folder.clone(), &changed);
        let before = held.as_ref().and_then(|held| held.before.as_ref());
        let is_known =
            before == Some(&folder) || accepted.as_ref().is_some_and(|it| it.folder == folder);
        if is_known && changed.is_empty() || store.is_reviewed(&found.folder, &hash) {
            if held.is_some() {
                self.complain(&key, store.release(&found.folder));
            }
            outside.extend(changed);
            self.larger_grants().accepted.insert(key, Content { folder, outside });
            return None;
        }
        // A later session must not run it either.
        outside.retain(|file, _| changed.contains_key(file));
        let folder_before = accepted.as_ref().map(|content| content.folder.as_str());
        self.complain(&key, store.hold(&found.folder, folder_before, &outside));
        let is_new = accepted.is_none() && before.is_none();
        let why = match changed.keys().next() {
            _ if is_new => "it appeared".to_owned(),
            Some(file) if is_known => {
                format!("{}, which it imports, changed", file.display())
            }
            _ => "it changed".to_owned(),
        };
        Some(waits(&why, hash.clone(), Some(hash)))
    }

    /// Accepts the content of an extension that Tenon itself has just written. Whoever asked for it chose its name, not its
    /// code.
    pub(super) fn accept_own_work(&self, folder: &Path) {
        let found = self.find_all().into_iter().find(|found| found.folder == folder);
        if let (Some(found), Ok(hash)) = (found, trust::content_hash(folder)) {
            let content = Content { folder: hash, outside: BTreeMap::new() };
            self.larger_grants().accepted.insert(key_of(&found), content);
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
        let grants = self.larger_grants();
        grants.smaller(&key, &config, has_secrets).next().map(|(smaller, _)| id_of(smaller))
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

/// A moment that is later than the date of every file there is, and earlier than that of every file that is written from now
/// on.
fn between_files() -> FileTime {
    let moment = clock(libc::CLOCK_REALTIME);
    // The system dates files by a clock that moves on every few milliseconds.
    #[cfg(target_os = "linux")]
    for _ in 0..MAX_TICKS {
        if clock(libc::CLOCK_REALTIME_COARSE) > moment {
            break;
        }
        std::thread::sleep(TICK);
    }
    moment
}

fn clock(clock: libc::clockid_t) -> FileTime {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is ours and outlives the call.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    FileTime(now.tv_sec, now.tv_nsec)
}
