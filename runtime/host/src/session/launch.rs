//! From a folder on disk to an isolate that runs it.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use tenon_protocol::message::LoadSpec;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::Outside;
use tenon_protocol::message::ToIsolate;
use tenon_protocol::permission::PermissionRequest;
use tracing::error;
use tracing::warn;

use super::Session;
use crate::config::ExtensionConfig;
use crate::config::Profile;
use crate::config::Sandbox;
use crate::discovery;
use crate::discovery::Found;
use crate::discovery::Scope;
use crate::environment;
use crate::events::Subscriber;
use crate::events::Urgency;
use crate::extension::ExtensionInfo;
use crate::extension::LoadError;
use crate::extension::Status;
use crate::extension::hash;
use crate::extensions::Connection;
use crate::extensions::Effects;
use crate::extensions::Extension;
use crate::extensions::Key;
use crate::extensions::Peer;
use crate::extensions::Table;
use crate::grants::GrantFolders;
use crate::isolates::Prepared;
use crate::isolates::StartError;
use crate::layout::FILES;
use crate::layout::SOCKETS;
use crate::lifecycle::Obstructed;
use crate::limits::Limits;
use crate::private_socket;
use crate::switches::Switches;
use crate::trust;
use crate::trust::TrustStore;

/// What keeps an extension from being started.
pub(super) struct Obstacle {
    pub status: Status,
    pub error: LoadError,
    /// The hash of its content, if the person can let it run by approving that.
    pub review: Option<String>,
    /// What is on disk, if only this waits for an approval and the load that serves goes on.
    pub held: Option<String>,
}

impl Obstacle {
    pub fn new(status: Status, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { status, error: LoadError::new(message, hint), review: None, held: None }
    }
}

pub(super) fn key_of(found: &Found) -> Key {
    (found.scope, found.name.clone(), found.folder.clone())
}

impl Session {
    /// Lists an extension that was found and, if nothing speaks against it, starts it; beside the load that
    /// serves, if there is one. Returns whether nothing speaks against it.
    pub(super) async fn add(&self, found: Found) -> bool {
        let look = |session: &Self| session.candidate(found, Self::obstacle);
        let Some(candidate) = self.on_disk(look).await else { return false };
        let is_free = !matches!(candidate.outlook, Outlook::Blocked(_));
        self.admit(candidate).await;
        is_free
    }

    /// Loads one extension that was found elsewhere, on trial, and waits until it runs or has failed.
    pub(super) async fn add_for_trial(&self, found: Found) {
        let look = |session: &Self| session.candidate(found, |_, _| None);
        if let Some(candidate) = self.on_disk(look).await {
            self.admit(candidate).await;
        }
        self.0.extensions.settled().await;
    }

    /// Everything that is read from disk before an extension can be listed and started.
    fn candidate(
        &self,
        found: Found,
        obstacle: impl FnOnce(&Self, &Found) -> Option<Obstacle>,
    ) -> Candidate {
        let key = key_of(&found);
        let obstacle = obstacle(self, &found);
        let files = entry_files(&found);
        let mut fresh = ExtensionInfo::new(&found);
        fresh.limits = Limits::configured(&self.0.config.of(&found.id(), &found.name));
        fresh.hash = files.values().next().filter(|hash| !hash.is_empty()).cloned();
        let log_files = self.0.log_files.as_ref();
        fresh.log_file =
            log_files.map(|files| files.file_for(found.scope, &found.name, &found.folder));
        let outlook = match (obstacle, &found.entry) {
            (Some(obstacle), _) => Outlook::Blocked(obstacle),
            (None, Err(reason)) => Outlook::Fails(LoadError::new(reason, None)),
            (None, Ok(entry)) => self.outlook(&key, entry.clone()),
        };
        Candidate { found, fresh, files, outlook }
    }

    /// Nothing speaks against starting an extension. If it is restricted, what others have on disk is written down before.
    fn outlook(&self, key: &Key, entry: PathBuf) -> Outlook {
        let mut spec = self.load_spec(key, entry);
        let config = self.0.config.of(&spec.id, &key.1);
        if let Err(error) = self.before_start(key, &config) {
            return Outlook::Fails(LoadError::new(format!("it is restricted, and {error}"), None));
        }
        spec.outside.refused_changes = self.refused_changes(key, &config);
        Outlook::Starts(Box::new(spec))
    }

    /// Lists an extension, and starts it if nothing speaks against it.
    #[tracing::instrument(level = "debug", name = "start", skip_all, fields(extension = %candidate.found.id()))]
    async fn admit(&self, candidate: Candidate) {
        let Candidate { found, fresh, files, outlook } = candidate;
        let key = key_of(&found);
        let list = || self.0.extensions.update(|table| table.discovered(&key, &found, fresh));
        match outlook {
            Outlook::Blocked(Obstacle { status, error, review, held }) => {
                list();
                let why = error.what.message.clone();
                self.change(|table| table.blocked(&key, Obstructed { status, error, held }, files));
                if let Some(hash) = review {
                    self.ask_for_review(&key, hash, &why);
                }
            }
            Outlook::Fails(error) => {
                warn!(extension = %found.id(), "an extension cannot be loaded");
                list();
                self.change(|table| table.not_started(&key, error));
            }
            Outlook::Starts(spec) => {
                // Before it is listed as starting: whoever waits here may go away.
                let prepared = self.0.isolates.prepare().await;
                list();
                self.start(&key, *spec, files, prepared);
            }
        }
        self.0.extensions.announce();
    }

    /// The status of an extension that must not be started.
    pub(super) fn obstacle_status(&self, found: &Found) -> Option<Status> {
        self.obstacle(found).map(|obstacle| obstacle.status)
    }

    /// Whatever keeps an extension from being started.
    pub(super) fn obstacle(&self, found: &Found) -> Option<Obstacle> {
        if let Some(other) = &found.shadowed_by {
            return Some(Obstacle::new(Status::Shadowed, format!("{other} is used instead"), None));
        }
        self.obstacle_of_its_own(found)
    }

    /// Whether an extension runs as far as others of its name are concerned: it serves, or nothing keeps it from being started
    /// but what the person switched.
    pub(super) fn takes_its_name(&self, found: &Found) -> bool {
        let serves = self.0.extensions.lock().current(&key_of(found)).is_some();
        if serves {
            return true;
        }
        let obstacle = self.obstacle_of_its_own(found);
        obstacle.is_none_or(|obstacle| obstacle.status != Status::Untrusted)
    }

    fn obstacle_of_its_own(&self, found: &Found) -> Option<Obstacle> {
        let options = &self.0.options;
        if found.scope == Scope::Project && !options.trusted {
            let hint = "`tenon trust` trusts this workspace once and for all, --trust for one run";
            let message = "this workspace is not trusted";
            return Some(Obstacle::new(Status::Untrusted, message, Some(hint.to_owned())));
        }
        if let Some(why) = Switches::of(&options.home).is_off(&found.folder) {
            let hint = format!("`tenon ext enable {}` lets it run again", found.name);
            return Some(Obstacle::new(Status::Disabled, why, Some(hint)));
        }
        if let Err(reason) = &found.entry {
            return Some(Obstacle::new(Status::Failed, reason, None));
        }
        if found.scope == Scope::Project && self.0.config.trust.review {
            // Who has approved what is in its folder has not approved what it imports from elsewhere.
            return self.unreviewed(found).or_else(|| self.unapproved(found));
        }
        self.unapproved(found)
    }

    /// Where every content is to be approved: one that was not.
    fn unreviewed(&self, found: &Found) -> Option<Obstacle> {
        let hint = format!("`tenon trust --review {}` approves what is in it now", found.name);
        match trust::content_hash(&found.folder) {
            Ok(hash) => {
                let store = TrustStore::of(&self.0.options.home);
                (!store.is_reviewed(&found.folder, &hash)).then(|| {
                    let message = "it is new or has changed, and was not reviewed";
                    let obstacle = Obstacle::new(Status::Untrusted, message, Some(hint));
                    Obstacle { review: Some(hash), ..obstacle }
                })
            }
            Err(error) => {
                let message = format!("its files cannot be read for a review: {error}");
                Some(Obstacle::new(Status::Untrusted, message, None))
            }
        }
    }

    /// Asks about an extension that still must not run, if what is in it now can be approved.
    pub(super) fn ask_again(&self, key: &Key, obstacle: Option<Obstacle>) {
        if let Some(Obstacle { review: Some(hash), error, .. }) = obstacle {
            self.ask_for_review(key, hash, &error.what.message);
        }
    }

    /// Whether an extension that must not run has a content that nobody was asked about.
    pub(super) fn is_to_be_asked(&self, key: &Key, obstacle: Option<&Obstacle>) -> bool {
        let review = obstacle.and_then(|obstacle| obstacle.review.as_ref());
        let table = self.0.extensions.lock();
        let asked = table.get(key).and_then(Extension::asked);
        self.0.options.front.is_some() && review.is_some() && review != asked
    }

    /// Asks the person whether what is in an extension now may run; once for every content.
    fn ask_for_review(&self, key: &Key, hash: String, why: &str) {
        if self.0.options.front.is_none() {
            return;
        }
        if !self.0.extensions.update(|table| table.asked(key, &hash)) {
            return;
        }
        // A question about what was in it before is taken back.
        self.0.extensions.announce();
        let (session, key, why) = (self.clone(), key.clone(), why.to_owned());
        self.0.runtime.spawn(async move {
            let request = PermissionRequest::ExtensionReview {
                intention: why,
                extension_name: crate::extensions::id_of(&key),
                path: key.2.to_string_lossy().into_owned(),
                hash: hash.clone(),
            };
            let is_stale =
                |table: &Table| table.get(&key).and_then(Extension::asked) != Some(&hash);
            let decision = tokio::select! {
                decision = session.ask_person_for_permission(&request) => decision,
                () = session.0.extensions.until(is_stale) => return,
                () = session.ending() => return,
            };
            if !decision.is_approved() {
                return;
            }
            let folder = key.2.clone();
            let reviewed = session.on_disk(move |session| {
                TrustStore::of(&session.0.options.home).review(&folder, &hash)
            });
            match reviewed.await {
                Some(Ok(())) => drop(session.refresh().await),
                Some(Err(error)) => {
                    session.0.extensions.note(&key, LogLevel::Error, error.to_string());
                }
                None => {}
            }
        });
    }

    /// Starts a load of an extension: beside the one that serves, or as the one that serves.
    fn start(
        &self,
        key: &Key,
        spec: LoadSpec,
        files: BTreeMap<PathBuf, String>,
        prepared: Result<Prepared, StartError>,
    ) {
        let hash = files.values().next().filter(|hash| !hash.is_empty()).cloned();
        let begun = self.change_with(|table| match table.begin(key, files) {
            Some((peer, effects)) => (Some(peer), effects),
            None => (None, Effects::new()),
        });
        let Some(peer) = begun else { return };
        let subscriber = self.connect_events(&peer, &spec.id);
        // Messages are taken in the order they are sent. A session that was dropped is not kept alive by
        // its extensions.
        let (session, speaker) = (Arc::downgrade(&self.0), peer.clone());
        let receive = move |message| {
            if let Some(inner) = session.upgrade() {
                Self(inner).receive(&speaker, message);
            }
        };
        let isolates = &self.0.isolates;
        let folder = spec.outside.folder.clone();
        // The isolate may speak before it is listed; the lock makes it wait until it is.
        let unwanted = self.change_with(|table| {
            if !table.is_begun(&peer) {
                return (Some(subscriber), Effects::new());
            }
            match prepared.and_then(|prepared| isolates.start(prepared, spec, receive)) {
                Ok(isolate) => {
                    let connection = Connection::new(isolate, subscriber, folder);
                    match table.attach(&peer, hash, connection) {
                        Ok(effects) => (None, effects),
                        Err(unwanted) => (Some(unwanted.subscriber), Effects::new()),
                    }
                }
                Err(error) => {
                    error!(extension = %crate::extensions::id_of(key), %error, "no process was started");
                    let error = LoadError::new(error.to_string(), None);
                    (Some(subscriber), table.not_started(key, error))
                }
            }
        });
        if let Some(subscriber) = unwanted {
            self.0.bus.remove(&subscriber);
        }
    }

    /// Gives a load its place on the bus. It hears nothing until it subscribes and serves.
    fn connect_events(&self, peer: &Peer, id: &str) -> Arc<Subscriber> {
        let (session, peer) = (Arc::downgrade(&self.0), peer.clone());
        // Under the lock, so that no call overtakes the events before it.
        let deliver = move |subscriber: &Subscriber| {
            let Some(inner) = session.upgrade() else { return };
            let table = inner.extensions.lock();
            if let Some(load) = table.load(&peer)
                && let Some(batch) = subscriber.take_batch(Urgency::WhenIdle)
            {
                // One that takes nothing more has its own queue full; the bus counts what it misses.
                let _ = load.payload().isolate.send(ToIsolate::Events { batch });
            }
        };
        self.0.bus.subscribe_batches(id, deliver)
    }

    fn load_spec(&self, (scope, name, folder): &Key, entry: PathBuf) -> LoadSpec {
        let options = &self.0.options;
        let id = format!("{scope}:{name}");
        let config = self.0.config.of(&id, name);
        let data = self.data_folder(*scope, name);
        if config.is_restricted() {
            // The kernel takes only folders that are there: it may write in some, but not make the folders that lead there,
            // and must not reach what appears in others. Without them its writes fail with their own error.
            if config.profile != Some(Profile::None) {
                let _ = std::fs::create_dir_all(&data);
                let _ = std::fs::create_dir_all(self.0.folder.join(FILES));
            }
            for folder in SOCKETS {
                let _ = private_socket::make_folder(&options.home.join(folder));
            }
        }
        // Symbolic links are resolved as node does it, so that packages are looked for beside the
        // real file.
        let entry = std::fs::canonicalize(&entry).unwrap_or(entry);
        let workspace = discovery::project_root(&options.cwd);
        let user = std::env::var_os("HOME").map(PathBuf::from);
        let grant = config.grant(GrantFolders {
            workspace,
            data: &data,
            session: &self.0.folder,
            home: &options.home,
            user: user.as_deref(),
            extension: entry.parent().unwrap_or(folder),
            extensions: &self
                .0
                .places
                .roots
                .iter()
                .map(|(_, root)| root.clone())
                .collect::<Vec<_>>(),
        });
        let env = self.environment(&config, &entry, &data);
        let limits = Limits::configured(&config).isolate;
        let sandbox_required = config.sandbox == Sandbox::Required;
        let cwd = options.cwd.clone();
        let real = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
        let outside = Outside { folder: real, refused_changes: None };
        LoadSpec { id, entry, cwd, env, grant, sandbox_required, limits, outside }
    }

    /// The folder an extension keeps its data in. Extensions of the same name in two repositories are
    /// two extensions.
    fn data_folder(&self, scope: Scope, name: &str) -> PathBuf {
        let folder = self.0.options.home.join("extension-data").join(scope.to_string());
        match scope {
            Scope::Project => {
                let root = discovery::project_root(&self.0.options.cwd);
                let hash = hash(root.as_os_str().as_encoded_bytes());
                folder.join(&hash[..16]).join(name)
            }
            Scope::Session => folder.join(self.id()).join(name),
            Scope::User | Scope::Folder => folder.join(name),
        }
    }

    fn environment(
        &self,
        config: &ExtensionConfig,
        entry: &Path,
        data: &Path,
    ) -> BTreeMap<String, String> {
        let mut env = environment::visible(environment::of_host(), config);
        let path = |path: &Path| path.to_string_lossy().into_owned();
        env.insert("SESSION_ID".into(), self.0.id.clone());
        env.insert("COPILOT_HOME".into(), path(&self.0.options.home));
        env.insert("EXTENSION_PATH".into(), path(entry));
        env.insert("TENON_EXTENSION_DATA".into(), path(data));
        env
    }
}

/// An extension that was found, and what was read of it.
struct Candidate {
    found: Found,
    /// What it is if no load of it serves.
    fresh: ExtensionInfo,
    /// Its entry, with the hash of what is in it.
    files: BTreeMap<PathBuf, String>,
    outlook: Outlook,
}

/// What becomes of an extension that was found.
enum Outlook {
    Blocked(Obstacle),
    Fails(LoadError),
    Starts(Box<LoadSpec>),
}

/// The entry file, until the isolate says what else it has read.
fn entry_files(found: &Found) -> BTreeMap<PathBuf, String> {
    let Ok(entry) = &found.entry else { return BTreeMap::new() };
    let path = std::fs::canonicalize(entry).unwrap_or_else(|_| entry.clone());
    let hash = std::fs::read(&path).map(|source| hash(&source)).unwrap_or_default();
    BTreeMap::from([(path, hash)])
}
