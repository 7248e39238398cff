//! From a folder on disk to an isolate that runs it.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tenon_isolate::limits;
use tenon_isolate::message::LoadSpec;
use tenon_isolate::message::ToIsolate;

use super::Loading;
use super::Session;
use super::permission::HANDLER_DEADLINE;
use crate::config::ExtensionConfig;
use crate::discovery;
use crate::discovery::Found;
use crate::discovery::Scope;
use crate::environment;
use crate::events::Subscriber;
use crate::extension::ExtensionInfo;
use crate::extension::LoadError;
use crate::extension::Status;
use crate::extension::hash;
use crate::extensions::Deadlines;
use crate::extensions::Extension;
use crate::extensions::Key;
use crate::extensions::Peer;
use crate::grants::GrantFolders;
use crate::grants::Profile;
use crate::hooks::HOOK_DEADLINE;

impl Session {
    /// Lists an extension and, if nothing speaks against it, starts it.
    pub(super) fn add(&self, found: &Found) {
        let key: Key = (found.scope, found.name.clone(), found.folder.clone());
        let mut info = ExtensionInfo::new(found);
        let obstacle = if let Some(other) = &found.shadowed_by {
            let error = LoadError::new(format!("{other} is used instead"), None);
            Some((Status::Shadowed, error))
        } else if found.scope == Scope::Project && !self.0.options.trusted {
            let hint = "run with --trust to let the extensions of this repository run".to_owned();
            Some((Status::Untrusted, LoadError::new("this workspace is not trusted", hint)))
        } else if let Err(reason) = &found.entry {
            Some((Status::Failed, LoadError::new(reason, None)))
        } else {
            None
        };
        let start = obstacle.is_none();
        if let Some((status, error)) = obstacle {
            info.fail(status, error);
        }
        let config = self.0.config.of(&info.id, &info.name);
        let within = |ms: Option<u32>, usually: Duration| {
            ms.map_or(usually, |ms| Duration::from_millis(ms.into()))
        };
        let deadlines = Deadlines {
            hook: within(config.hook_deadline_ms, HOOK_DEADLINE),
            handler: within(config.handler_deadline_ms, HANDLER_DEADLINE),
        };
        let mut extension = Extension::new(info, deadlines);
        {
            let mut state = self.0.extensions.lock();
            let before = state.map.remove(&key);
            extension.info.generation =
                before.as_ref().map_or(0, |before| before.info.generation) + u32::from(start);
            if let Some(before) = before {
                extension.log = before.log;
            }
            state.map.insert(key.clone(), extension);
        }
        if start && let Ok(entry) = &found.entry {
            self.start(key, entry.clone());
        }
    }

    pub(super) fn start(&self, key: Key, entry: PathBuf) {
        let spec = self.load_spec(&key, entry);
        let id = spec.id.clone();
        self.connect_events(&key, &id);
        // The isolate may speak before it is listed; the lock makes it wait until it is.
        let mut state = self.0.extensions.lock();
        let Some(extension) = state.map.get_mut(&key) else { return };
        // Messages are taken on the isolate's own thread, in order. A session that was dropped is not
        // kept alive by its extensions.
        let session = Arc::downgrade(&self.0);
        let peer = Peer { key, generation: extension.info.generation };
        let receive = move |message| {
            if let Some(inner) = session.upgrade() {
                Self(inner).receive(&peer, message);
            }
        };
        match self.0.launcher.start(spec, receive) {
            Ok(isolate) => extension.isolate = Some(isolate),
            Err(error) => {
                extension.info.fail(Status::Failed, LoadError::new(error.to_string(), None));
            }
        }
    }

    /// Stops every extension and starts what is on disk now; waits until each is running or has failed.
    pub async fn reload(&self) {
        let _alone = self.0.lifecycle.lock().await;
        if self.facts().ended {
            return;
        }
        let loading = Loading::new(self);
        self.stop_extensions().await;
        let found = discovery::find(&self.0.places, self.0.options.trusted);
        {
            let mut state = self.0.extensions.lock();
            let key = |found: &Found| (found.scope, found.name.clone(), found.folder.clone());
            let keys: std::collections::BTreeSet<Key> = found.iter().map(key).collect();
            state.map.retain(|key, _| keys.contains(key));
        }
        found.iter().for_each(|found| self.add(found));
        self.settled().await;
        drop(loading);
    }

    /// Gives an extension its place on the bus. It hears nothing until it subscribes.
    fn connect_events(&self, key: &Key, id: &str) {
        let (session, receiver) = (Arc::downgrade(&self.0), key.clone());
        // Under the lock, so that no call overtakes the events before it.
        let deliver = move |subscriber: &Subscriber| {
            let Some(inner) = session.upgrade() else { return };
            let state = inner.extensions.lock();
            let Some(extension) = state.map.get(&receiver) else { return };
            let is_its =
                extension.subscriber.as_deref().is_some_and(|its| std::ptr::eq(its, subscriber));
            if is_its
                && let Some(isolate) = &extension.isolate
                && let Some(batch) = subscriber.take_batch()
            {
                isolate.send(ToIsolate::Events { batch });
            }
        };
        let subscriber = self.0.bus.subscribe_batches(id, deliver);
        if let Some(extension) = self.0.extensions.lock().map.get_mut(key) {
            extension.subscriber = Some(subscriber);
        }
    }

    fn load_spec(&self, (scope, name, folder): &Key, entry: PathBuf) -> LoadSpec {
        let options = &self.0.options;
        let id = format!("{scope}:{name}");
        let config = self.0.config.of(&id, name);
        let data = self.data_folder(*scope, name);
        if config.profile == Some(Profile::Workspace) {
            // It may write there, but not make the folders that lead there. Without the folder its
            // writes fail with their own error.
            let _ = std::fs::create_dir_all(&data);
        }
        // Symbolic links are resolved as node does it, so that packages are looked for beside the
        // real file.
        let entry = std::fs::canonicalize(&entry).unwrap_or(entry);
        let workspace = discovery::project_root(&options.cwd);
        let grant = config.grant(GrantFolders {
            workspace,
            data: &data,
            session: &self.0.folder,
            extension: entry.parent().unwrap_or(folder),
        });
        let env = self.environment(&config, &entry, &data);
        let mut limits = limits::default_limits();
        if let Some(megabytes) = config.heap_mb {
            limits.heap_bytes = megabytes as usize * 1024 * 1024;
        }
        if let Some(seconds) = config.start_deadline_s {
            limits.start_deadline_ms = u64::from(seconds) * 1000;
        }
        LoadSpec { id, entry, cwd: options.cwd.clone(), env, grant, limits }
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
