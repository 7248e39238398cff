//! Code that appears or changes while an extension with a smaller grant runs. That extension may have written it, to have
//! it run with more rights than it has itself; so it waits for the person's approval. The kernel protects most places where
//! extensions are, but not those that are not there yet, and not everywhere.
//!
//! What an extension imports from outside of its folder counts, too. The files of the last load are compared here before the
//! next. Whatever else the next one imports, such as a package that now stands nearer, is met by the loader, which refuses what
//! changed since the smaller grant was there ([`RefusedChanges`]).

use std::collections::BTreeMap;
use std::path::Path;
#[cfg(target_os = "linux")]
use std::time::Duration;

use tenon_protocol::message::FileTime;
use tenon_protocol::message::LoadedFile;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::RefusedChanges;

use super::Session;
use super::baseline::Abandoned;
use super::baseline::Baseline;
use super::baseline::Content;
use super::launch::Obstacle;
use super::launch::key_of;
use crate::approvals::Approvals;
use crate::approvals::identity;
use crate::config::ExtensionConfig;
use crate::discovery;
use crate::discovery::Found;
use crate::discovery::Places;
use crate::discovery::Scope;
use crate::extension::Status;
use crate::extensions::Key;
use crate::extensions::id_of;
use crate::store::StoreError;
use crate::trust;
use crate::trust::State;
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

/// So many extensions with equal grants tell as much as any number of them: what one of them changes in another is that one's
/// own, and the other's all the same.
const ENOUGH_EQUALS: usize = 2;

/// Who has run in this session with a restricted grant, and which content of others is not theirs.
#[derive(Default)]
pub struct LargerGrants {
    /// Every restricted extension that was started, and when. One that has ended may have written files before.
    restricted: BTreeMap<Key, (ExtensionConfig, FileTime)>,
    /// By extension, the content it had before any of those that may do less ran, or that was approved since.
    accepted: BTreeMap<Key, Content>,
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

/// A reason to compare what is on disk of an extension with what was.
struct Doubt {
    /// The extension that may do less.
    who: String,
    /// What was on disk before that one was started, if there was anything.
    accepted: Option<Content>,
}

impl Session {
    /// An extension is about to be started. If it is the first time and it is restricted, what others have on disk now is
    /// not its work. That is written down before it can do anything about it; if it cannot be, the extension must not run.
    pub(super) fn before_start(
        &self,
        key: &Key,
        config: &ExtensionConfig,
    ) -> Result<(), StoreError> {
        if !config.is_restricted() || self.larger_grants().restricted.contains_key(key) {
            return Ok(());
        }
        let is_equal =
            |other: &&ExtensionConfig| config.is_within(other) && other.is_within(config);
        let equals = {
            let grants = self.larger_grants();
            grants.restricted.values().map(|(other, _)| other).filter(is_equal).count()
        };
        // Whoever may do more than it does already waits for two others that may do the same.
        let is_news = equals < ENOUGH_EQUALS;
        if is_news {
            self.accept_what_is_there();
        }
        let latest = self.larger_grants().restricted.values().map(|(_, since)| *since).max();
        let now = clock(libc::CLOCK_REALTIME).0;
        let same = latest.filter(|latest| (0..=SAME_START_S).contains(&(now - latest.0)));
        let since = same.unwrap_or_else(between_files);
        self.larger_grants().restricted.insert(key.clone(), (config.clone(), since));
        if is_news && let Err(error) = self.record_baseline() {
            self.larger_grants().restricted.remove(key);
            return Err(error);
        }
        Ok(())
    }

    /// Takes down what nobody can have touched yet who may do less.
    fn accept_what_is_there(&self) {
        for found in self.find_all() {
            let is_doubtful = self.smaller_than(&found).is_some();
            if is_doubtful || !self.is_free(&found) || self.unapproved(&found).is_some() {
                continue;
            }
            let other = key_of(&found);
            match State::of(&found.folder) {
                Ok(state) => {
                    let outside = {
                        let table = self.0.extensions.lock();
                        table.get(&other).map(|it| it.outside().clone()).unwrap_or_default()
                    };
                    let content = Content { folder: state.text, outside };
                    self.larger_grants().accepted.insert(other, content);
                }
                Err(_) => drop(self.larger_grants().accepted.remove(&other)),
            }
        }
    }

    /// Writes down what others had on disk, for sessions that come after this one or run beside it.
    fn record_baseline(&self) -> Result<(), StoreError> {
        if self.larger_grants().restricted.is_empty() {
            return Ok(());
        }
        self.0.baselines.record(&self.0.options.home, || {
            let grants = self.larger_grants();
            let mut restricted: Vec<(Key, ExtensionConfig)> = Vec::new();
            for (key, (config, _)) in &grants.restricted {
                if restricted.iter().filter(|(_, it)| it == config).count() < ENOUGH_EQUALS {
                    restricted.push((key.clone(), config.clone()));
                }
            }
            let accepted = grants.accepted.iter();
            let folders = accepted.map(|((.., folder), content)| (folder.clone(), content.clone()));
            let roots = self.0.places.roots.iter();
            let is_free = |scope: &Scope| *scope != Scope::Project || self.0.options.trusted;
            Baseline {
                roots: roots.filter(|(scope, _)| is_free(scope)).cloned().collect(),
                restricted,
                folders: folders.collect(),
            }
        })
    }

    /// Compares with what sessions have left behind that did not end in order. What differs is held from now on.
    pub(super) fn settle_baselines(&self) {
        for abandoned in Abandoned::all(&self.0.options.home) {
            let places = Places { roots: abandoned.baseline.roots.clone() };
            if self.hold_what_differs(&places, |_| true) {
                abandoned.settle();
            }
        }
    }

    /// Which files from outside a load must not read, because an extension that may do less may have written them.
    pub(super) fn refused_changes(
        &self,
        key: &Key,
        config: &ExtensionConfig,
    ) -> Option<RefusedChanges> {
        if self.larger_grants().restricted.is_empty() {
            return None;
        }
        let has_secrets = Approvals::of(&self.0.options.home).has_any(&identity(key));
        let grants = self.larger_grants();
        let (who, since) =
            grants.smaller(key, config, has_secrets).min_by_key(|(_, since)| *since)?;
        let accepted = grants.accepted.get(key).map(|content| content.outside.clone());
        Some(RefusedChanges { who: id_of(who), since, accepted: accepted.unwrap_or_default() })
    }

    /// Takes down what a load has read from outside of its folder; whether it was refused any of it.
    pub(super) fn note_outside(&self, key: &Key, files: Vec<LoadedFile>) -> bool {
        let is_refused = files.iter().any(|file| file.is_refused);
        let mut is_news = false;
        if let Some(content) = self.larger_grants().accepted.get_mut(key) {
            for LoadedFile { path, hash, is_refused, .. } in files {
                // What is known of it already was in it before. Nobody has seen what was before in one that was refused.
                let before = if is_refused { String::new() } else { hash };
                is_news |= !content.outside.contains_key(&path);
                content.outside.entry(path).or_insert(before);
            }
        }
        if is_news {
            // Nobody waits for this: whoever starts an extension that may do less writes down everything once more before.
            let (session, key) = (self.clone(), key.clone());
            self.0.runtime.spawn_blocking(move || {
                session.complain(&key, session.record_baseline());
            });
        }
        is_refused
    }

    /// Looks again at an extension of which a load was refused something: it waits for the person's approval from now on.
    pub(super) fn hold_again(&self, key: &Key) {
        let (session, key) = (self.clone(), key.clone());
        self.0.runtime.spawn(async move {
            let _alone = session.0.lifecycle.lock().await;
            let blocked = session.on_disk(move |session| {
                let found = session.find_all().into_iter().find(|found| key_of(found) == key);
                found.filter(|found| session.obstacle_status(found).is_some())
            });
            // If nothing keeps it from running, the file has changed once more, and what watches files sees to it.
            if let Some(found) = blocked.await.flatten() {
                session.add(found).await;
            }
        });
    }

    /// Whatever keeps an extension waiting for the person's approval.
    pub(super) fn unapproved(&self, found: &Found) -> Option<Obstacle> {
        self.judge(found).0
    }

    /// The same, and whether later sessions will know of it.
    fn judge(&self, found: &Found) -> (Option<Obstacle>, bool) {
        let key = key_of(found);
        let store = TrustStore::of(&self.0.options.home);
        let known = store.held(&found.folder).and_then(|held| Ok((held, self.doubts(found)?)));
        let (held, doubts) = match known {
            Ok(known) => known,
            // Whoever can damage what was written down must not gain by it.
            Err(error) => {
                let message =
                    format!("whether it waits for your approval cannot be determined: {error}");
                let obstacle = Obstacle::new(Status::Untrusted, message, None);
                return (Some(Obstacle { held: Some(String::new()), ..obstacle }), false);
            }
        };
        if doubts.is_empty() && held.is_none() {
            return (None, true);
        }
        let before = held.as_ref().and_then(|held| held.before.as_ref());
        let mut outside = held.as_ref().map(|held| held.outside.clone()).unwrap_or_default();
        let accepted = || doubts.iter().filter_map(|doubt| doubt.accepted.as_ref());
        outside.extend(accepted().flat_map(|content| content.outside.clone()));
        let changed = trust::changed(&outside);
        let state = State::of(&found.folder);
        let is_known = |folder: &String| {
            let is_it =
                |doubt: &Doubt| doubt.accepted.as_ref().is_some_and(|it| it.folder == *folder);
            before == Some(folder) || !doubts.is_empty() && doubts.iter().all(is_it)
        };
        if let Ok(State { text: folder, .. }) = &state {
            let hash = trust::with_outside(folder.clone(), &changed);
            let is_as_before = is_known(folder) && changed.is_empty();
            if is_as_before || store.is_reviewed(&found.folder, &hash) {
                if held.is_some() {
                    self.complain(&key, store.release(&found.folder));
                }
                outside.extend(changed);
                self.accept(&key, Content { folder: folder.clone(), outside });
                return (None, true);
            }
        }
        // A later session must not run it either.
        outside.retain(|file, _| changed.contains_key(file));
        let is_new = before.is_none() && (doubts.is_empty() || accepted().count() < doubts.len());
        let folder_before = accepted().next().filter(|_| !is_new).map(|it| it.folder.as_str());
        let written = store.hold(&found.folder, folder_before, &outside);
        let is_recorded = written.is_ok();
        self.complain(&key, written);
        let mut hint = format!("`tenon trust --review {}` approves what is in it now", found.name);
        let mut review = None;
        let (why, now) = match state {
            Ok(State { text, unread: None }) => {
                let hash = trust::with_outside(text.clone(), &changed);
                review = Some(hash.clone());
                let why = match changed.keys().next() {
                    _ if is_new => "it appeared".to_owned(),
                    Some(file) if is_known(&text) => {
                        format!("{}, which it imports, changed", file.display())
                    }
                    _ => "it changed".to_owned(),
                };
                (why, hash)
            }
            Ok(State { unread: Some(error), .. }) | Err(error) => {
                hint = format!(
                    "reduce its folder below {} files and {} MB that can be read, or give every extension of this \
                     session the same grant",
                    trust::MAX_REVIEW_FILES,
                    trust::MAX_REVIEW_BYTES / 1024 / 1024
                );
                let why = format!("its files cannot be read ({error}), and may have changed");
                (why, error.to_string())
            }
        };
        let who = doubts.first().map_or("an extension", |doubt| doubt.who.as_str());
        let message =
            format!("it waits for your approval: {why} while {who} ran, which has a smaller grant");
        let obstacle = Obstacle::new(Status::Untrusted, message, Some(hint));
        (Some(Obstacle { review, held: Some(now), ..obstacle }), is_recorded)
    }

    /// Why an extension is not taken for what it was: one that may do less has run in this session, or in another, which
    /// lives or did not end in order.
    fn doubts(&self, found: &Found) -> Result<Vec<Doubt>, StoreError> {
        let others = self.0.baselines.of_others(&self.0.options.home)?;
        // Most sessions have nothing to look up.
        if others.is_empty() && self.larger_grants().restricted.is_empty() {
            return Ok(Vec::new());
        }
        let key = key_of(found);
        let mut doubts = Vec::new();
        if let Some(who) = self.smaller_than(found) {
            let accepted = self.larger_grants().accepted.get(&key).cloned();
            doubts.push(Doubt { who, accepted });
        }
        let config = self.0.config.of(&found.id(), &found.name);
        let has_secrets = Approvals::of(&self.0.options.home).has_any(&identity(&key));
        for other in others.iter().filter(|other| other.covers(&found.folder)) {
            let mut restricted = other.restricted.iter();
            let is_smaller = |(it, its): &&(Key, ExtensionConfig)| {
                *it != key && (has_secrets || !config.is_within(its))
            };
            if let Some((smaller, _)) = restricted.find(is_smaller) {
                let accepted = other.content(&found.folder).cloned();
                doubts.push(Doubt { who: id_of(smaller), accepted });
            }
        }
        Ok(doubts)
    }

    /// Takes down what is on disk of an extension, which may run.
    fn accept(&self, key: &Key, content: Content) {
        {
            let mut grants = self.larger_grants();
            if grants.accepted.get(key) == Some(&content) {
                return;
            }
            grants.accepted.insert(key.clone(), content);
        }
        self.complain(key, self.record_baseline());
    }

    /// Accepts an extension that Tenon itself has just written, of which this is the hash. Whoever asked for it chose its
    /// name, not its code.
    pub(super) fn accept_own_work(&self, folder: &Path, hash: &str) {
        let found = self.find_all().into_iter().find(|found| found.folder == folder);
        let Some(found) = found else { return };
        let key = key_of(&found);
        let is_doubted = self.doubts(&found).map_or(true, |doubts| !doubts.is_empty());
        let is_reviewed_by_person = found.scope == Scope::Project && self.0.config.trust.review;
        if is_doubted && !is_reviewed_by_person {
            // Sessions beside this one are told, too.
            let store = TrustStore::of(&self.0.options.home);
            self.complain(&key, store.review(folder, hash));
        }
        self.accept(&key, Content { folder: hash.to_owned(), outside: BTreeMap::new() });
        // It may have been noticed before.
        self.watch_files();
    }

    /// After the last extension has ended: what has changed until then waits in later sessions. If it cannot be found out or
    /// written down, a later session compares again.
    pub(super) fn hold_what_changed(&self) {
        if self.larger_grants().restricted.is_empty() {
            return;
        }
        if self.hold_what_differs(&self.0.places, |found| self.is_free(found)) {
            self.0.baselines.end();
        }
    }

    /// Has later sessions hold what differs; whether nothing was left out.
    fn hold_what_differs(&self, places: &Places, is_meant: impl Fn(&Found) -> bool) -> bool {
        let mut is_complete = true;
        for found in discovery::find(places, true) {
            // One without an entry that can be used is no less somebody's work.
            if is_meant(&found) && found.folder.to_str().is_some() {
                is_complete &= self.judge(&found).1;
            }
        }
        // Looked at last: who takes descriptors away does not give them back.
        is_complete && discovery::can_look_into(places)
    }

    fn is_free(&self, found: &Found) -> bool {
        found.scope != Scope::Project || self.0.options.trusted
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

    fn complain(&self, key: &Key, written: Result<(), StoreError>) {
        if let Err(error) = written {
            self.0.extensions.note(key, LogLevel::Error, error.to_string());
        }
    }

    fn larger_grants(&self) -> parking_lot::MutexGuard<'_, LargerGrants> {
        // Every statement leaves it whole, also one that panics.
        self.0.larger_grants.lock()
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::*;
    use crate::SessionOptions;
    use crate::store::make_private_folder;

    /// A workspace, a home, and what is in them. Nothing is executed.
    struct World(tempfile::TempDir);

    impl World {
        fn new() -> Self {
            let world = Self(tempfile::tempdir().unwrap());
            fs::create_dir_all(world.cwd().join(".git")).unwrap();
            make_private_folder(&world.home()).unwrap();
            let meek = "profile = \"none\"\n";
            let config = format!("[extensions.meek]\n{meek}[extensions.equal]\n{meek}");
            fs::write(world.home().join("config.toml"), config).unwrap();
            world.write("meek", "1");
            world
        }

        fn cwd(&self) -> PathBuf {
            self.0.path().join("cwd")
        }

        fn home(&self) -> PathBuf {
            self.0.path().join("home")
        }

        fn folder(&self, name: &str) -> PathBuf {
            self.cwd().join(".github/extensions").join(name)
        }

        fn write(&self, name: &str, text: &str) {
            fs::create_dir_all(self.folder(name)).unwrap();
            fs::write(self.folder(name).join("extension.mjs"), text).unwrap();
        }

        fn session(&self) -> Session {
            let user_folders = vec![self.home()];
            let options = SessionOptions::new(self.cwd(), self.home());
            Session::new(SessionOptions { trusted: true, user_folders, ..options }).unwrap()
        }

        /// As if an extension were about to be started.
        fn start(&self, session: &Session, name: &str) -> Result<(), StoreError> {
            let key = (Scope::Project, name.to_owned(), self.folder(name));
            session.before_start(&key, &session.0.config.of(&id_of(&key), name))
        }

        fn baselines(&self) -> usize {
            let Ok(files) = fs::read_dir(self.home().join("baselines")) else { return 0 };
            let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
            files.filter(|file| is_record(&file.as_ref().unwrap().path())).count()
        }

        fn approve(&self, name: &str) {
            let store = TrustStore::of(&self.home());
            let hash = store.content_to_review(&self.folder(name)).unwrap();
            store.review(&self.folder(name), &hash).unwrap();
        }
    }

    fn waits(session: &Session, name: &str) -> Option<String> {
        let found = session.find_all().into_iter().find(|found| found.name == name).unwrap();
        session.unapproved(&found).map(|obstacle| obstacle.error.what.message)
    }

    #[tokio::test]
    async fn what_cannot_be_read_waits_here_and_later() {
        let world = World::new();
        let session = world.session();
        world.start(&session, "meek").unwrap();
        world.write("new", "1");
        symlink("/proc/self/mem", world.folder("new").join("k.mjs")).unwrap();
        let why = waits(&session, "new").unwrap();
        assert!(why.contains("its files cannot be read"), "{why}");
        session.hold_what_changed();
        assert_eq!(world.baselines(), 0);
        drop(session);
        let later = world.session();
        assert!(waits(&later, "new").unwrap().contains("cannot be read"));
        // What was not readable is new when it can be read.
        fs::remove_file(world.folder("new").join("k.mjs")).unwrap();
        assert!(waits(&later, "new").is_some());
        world.approve("new");
        assert_eq!(waits(&later, "new"), None);
    }

    #[tokio::test]
    async fn a_session_beside_it_holds_what_the_first_has_not_noticed() {
        let world = World::new();
        world.write("mighty", "1");
        let first = world.session();
        world.start(&first, "meek").unwrap();
        let beside = world.session();
        assert_eq!(waits(&beside, "mighty"), None);
        world.write("new", "1");
        let why = waits(&beside, "new").unwrap();
        assert!(why.contains("it appeared while project:meek ran"), "{why}");
        world.write("mighty", "2");
        assert!(waits(&beside, "mighty").unwrap().contains("it changed"));
        world.approve("mighty");
        assert_eq!(waits(&beside, "mighty"), None);
        assert_eq!(waits(&first, "mighty"), None);
    }

    #[tokio::test]
    async fn a_session_that_is_killed_leaves_what_the_next_compares_with_once() {
        let world = World::new();
        world.write("mighty", "1");
        world.write("other", "1");
        let session = world.session();
        world.start(&session, "meek").unwrap();
        assert_eq!(world.baselines(), 1);
        // Not by an end: as if it were killed.
        drop(session);
        world.write("mighty", "2");
        world.write("new", "1");
        let next = world.session();
        next.settle_baselines();
        assert_eq!(world.baselines(), 0);
        assert!(waits(&next, "mighty").is_some() && waits(&next, "new").is_some());
        // What is edited from now on is the person's, and so is the content that was there before.
        world.write("other", "2");
        assert_eq!(waits(&next, "other"), None);
        world.write("mighty", "1");
        assert_eq!(waits(&next, "mighty"), None);
    }

    #[tokio::test]
    async fn an_orderly_end_leaves_nothing_to_ask_about() {
        let world = World::new();
        world.write("mighty", "1");
        let session = world.session();
        world.start(&session, "meek").unwrap();
        world.write("new", "1");
        session.hold_what_changed();
        assert_eq!(world.baselines(), 0);
        world.write("mighty", "2");
        let next = world.session();
        next.settle_baselines();
        assert_eq!(waits(&next, "mighty"), None);
        assert!(waits(&next, "new").is_some());
    }

    #[tokio::test]
    async fn an_end_that_cannot_compare_leaves_it_to_the_next_session() {
        let world = World::new();
        let session = world.session();
        world.start(&session, "meek").unwrap();
        let (root, aside) = (world.cwd().join(".github/extensions"), world.cwd().join("aside"));
        fs::rename(&root, &aside).unwrap();
        symlink("extensions", &root).unwrap();
        session.hold_what_changed();
        drop(session);
        assert_eq!(world.baselines(), 1);
        fs::remove_file(&root).unwrap();
        fs::rename(&aside, &root).unwrap();
        world.write("new", "1");
        let next = world.session();
        next.settle_baselines();
        assert!(waits(&next, "new").is_some());
        assert_eq!(world.baselines(), 0);
        // The same where nothing can be written down.
        let session = world.session();
        world.start(&session, "meek").unwrap();
        world.write("newer", "1");
        fs::write(world.home().join(trust::FILE_NAME), "{").unwrap();
        session.hold_what_changed();
        assert_eq!(world.baselines(), 1);
    }

    #[tokio::test]
    async fn whoever_cannot_be_written_down_is_not_started() {
        let world = World::new();
        fs::write(world.home().join("baselines"), "").unwrap();
        let session = world.session();
        let error = world.start(&session, "meek").unwrap_err().to_string();
        assert!(error.contains("cannot be"), "{error}");
        fs::remove_file(world.home().join("baselines")).unwrap();
        world.start(&session, "meek").unwrap();
        assert_eq!(world.baselines(), 1);
    }

    #[tokio::test]
    async fn a_damaged_store_lets_nothing_run() {
        let world = World::new();
        world.write("mighty", "1");
        let session = world.session();
        assert_eq!(waits(&session, "mighty"), None);
        fs::write(world.home().join(trust::FILE_NAME), "{").unwrap();
        assert!(waits(&session, "mighty").unwrap().contains("trust.json is damaged"));
    }

    #[tokio::test]
    async fn what_the_person_did_before_the_smaller_grant_came_is_theirs() {
        let world = World::new();
        world.write("mighty", "1");
        world.write("equal", "1");
        let session = world.session();
        world.start(&session, "meek").unwrap();
        // It may do no more, so what changes in it needs no approval; nor does it when another like it starts.
        world.write("equal", "2");
        assert_eq!(waits(&session, "equal"), None);
        world.start(&session, "equal").unwrap();
        assert_eq!(waits(&session, "equal"), None);
        assert_eq!(waits(&session, "mighty"), None);
    }

    #[tokio::test]
    async fn a_large_content_runs_as_long_as_it_is_unchanged() {
        let world = World::new();
        world.write("large", "1");
        let file = fs::File::create(world.folder("large").join("model")).unwrap();
        file.set_len(trust::MAX_REVIEW_BYTES + 1).unwrap();
        let session = world.session();
        world.start(&session, "meek").unwrap();
        assert_eq!(waits(&session, "large"), None);
        world.write("large", "2");
        let found = session.find_all().into_iter().find(|found| found.name == "large").unwrap();
        let obstacle = session.unapproved(&found).unwrap();
        assert_eq!(obstacle.review, None);
        assert!(obstacle.error.hint.unwrap().contains("20000 files"));
    }

    #[tokio::test]
    async fn what_waits_shadows_nothing() {
        let world = World::new();
        let guard = world.home().join("extensions/guard");
        fs::create_dir_all(&guard).unwrap();
        fs::write(guard.join("extension.mjs"), "1").unwrap();
        let session = world.session();
        world.start(&session, "meek").unwrap();
        world.write("guard", "1");
        let status = |scope: Scope| {
            let found = session.find_all();
            let found = found.iter().find(|it| it.name == "guard" && it.scope == scope).unwrap();
            session.obstacle_status(found)
        };
        assert_eq!(status(Scope::User), None);
        assert_eq!(status(Scope::Project), Some(Status::Untrusted));
        world.approve("guard");
        assert_eq!(status(Scope::User), Some(Status::Shadowed));
        assert_eq!(status(Scope::Project), None);
    }

    #[tokio::test]
    async fn own_work_is_what_was_written_and_not_what_is_there() {
        let world = World::new();
        let session = world.session();
        world.start(&session, "meek").unwrap();
        world.write("made", "1");
        let hash = trust::content_hash(&world.folder("made")).unwrap();
        world.write("made", "2");
        session.accept_own_work(&world.folder("made"), &hash);
        assert!(waits(&session, "made").is_some());
        world.write("made", "1");
        assert_eq!(waits(&session, "made"), None);
        // A session beside it knows as well.
        assert_eq!(waits(&world.session(), "made"), None);
    }
}
