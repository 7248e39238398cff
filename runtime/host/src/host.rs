//! The host: every extension in its isolate, one registry, calls in and results out.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::sync::Weak;

use serde_json::Value;
use serde_json::json;
use tenon_isolate::Isolate;
use tenon_isolate::Launcher;
use tenon_isolate::Spare;
use tenon_isolate::limits;
use tenon_isolate::message::CallId;
use tenon_isolate::message::CallKind;
use tenon_isolate::message::EndReason;
use tenon_isolate::message::FromIsolate;
use tenon_isolate::message::LoadSpec;
use tenon_isolate::message::LogLevel;
use tenon_isolate::message::LogRecord;
use tenon_isolate::message::ScriptError;
use tenon_isolate::message::ToIsolate;
use tokio::sync::mpsc;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::config::ConfigError;
use crate::config::ExtensionConfig;
use crate::discovery;
use crate::discovery::Found;
use crate::discovery::Places;
use crate::discovery::Scope;
use crate::environment;
use crate::extension::ExtensionInfo;
use crate::extension::LoadError;
use crate::extension::Registration;
use crate::extension::Status;
use crate::extension::hash;
use crate::grants::GrantFolders;
use crate::grants::Profile;
use crate::logs::Log;
use crate::logs::LogLine;
use crate::registry::Registry;
use crate::tool::ToolResult;

/// Where and how a host works.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
    /// Tenon's own folder: configuration, user extensions, session state.
    pub home: PathBuf,
    /// Folders whose `extensions` folder holds the user's extensions.
    pub user_folders: Vec<PathBuf>,
    /// Folders whose sub-folders are extensions, beside the usual places.
    pub extension_folders: Vec<PathBuf>,
    /// Whether the extensions of the repository may run.
    pub trusted: bool,
    /// Whether an isolate is kept warm for the next load.
    pub spare: Spare,
}

/// A call could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No extension has such a tool.
    #[error("there is no tool \"{name}\"")]
    UnknownTool {
        /// What was asked for.
        name: String,
        /// What there is.
        available: Vec<String>,
    },
}

/// The extensions of one session. Clones share them.
#[derive(Clone)]
pub struct Host(Arc<Inner>);

struct Inner {
    options: HostOptions,
    config: Config,
    places: Places,
    session_id: String,
    launcher: Launcher,
    state: Mutex<State>,
    /// Counts up whenever an extension's status changes.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    extensions: BTreeMap<Key, Extension>,
    registry: Registry,
    next_call: CallId,
}

struct Extension {
    info: ExtensionInfo,
    isolate: Option<Isolate>,
    /// The task that listens to the isolate; it ends after the isolate's last word.
    attending: Option<JoinHandle<()>>,
    calls: HashMap<CallId, oneshot::Sender<Reply>>,
    log: Log,
}

/// Scope, name and folder: names alone are not unique.
type Key = (Scope, String, PathBuf);

/// The outcome of a call, as the isolate sends it.
type Reply = Result<Value, ScriptError>;

impl Host {
    /// A host with no extension loaded yet.
    pub fn new(options: HostOptions) -> Result<Self, ConfigError> {
        let config = Config::read(&options.home)?;
        let places = Places::new(&options.cwd, &options.user_folders, &options.extension_folders);
        let launcher = Launcher::new(options.spare);
        Ok(Self(Arc::new(Inner {
            options,
            config,
            places,
            session_id: uuid::Uuid::new_v4().to_string(),
            launcher,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
        })))
    }

    /// Where extensions were looked for.
    pub fn places(&self) -> &Places {
        &self.0.places
    }

    /// Finds and starts every extension, and waits until each is running or has failed.
    pub async fn load(&self) {
        for found in discovery::find(&self.0.places, self.0.options.trusted) {
            self.add(&found);
        }
        let mut changed = self.0.changed.subscribe();
        while self.list().iter().any(|info| info.status == Status::Starting) {
            // The sender lives as long as we do.
            let _ = changed.changed().await;
        }
    }

    /// Waits until the spare isolate, if one is kept, is ready.
    pub async fn wait_for_spare(&self) {
        self.0.launcher.wait_for_spare().await;
    }

    /// Every extension, by scope and name.
    pub fn list(&self) -> Vec<ExtensionInfo> {
        self.state().extensions.values().map(|extension| extension.info.clone()).collect()
    }

    /// The extensions with the given name or id.
    pub fn find(&self, name_or_id: &str) -> Vec<ExtensionInfo> {
        let matches = |info: &ExtensionInfo| info.name == name_or_id || info.id == name_or_id;
        self.list().into_iter().filter(matches).collect()
    }

    /// The log of an extension.
    pub fn log(&self, info: &ExtensionInfo) -> Vec<LogLine> {
        let state = self.state();
        let found = state.extensions.values().find(|extension| extension.info.path == info.path);
        found.map(|extension| extension.log.lines()).unwrap_or_default()
    }

    /// Calls a tool and waits for its result. Dropping the future cancels the call: the handler's
    /// `invocation.signal` fires.
    pub async fn call_tool(&self, name: &str, args: Value) -> Result<ToolResult, CallError> {
        let (key, call, reply) = self.start_call(name, args)?;
        let mut guard = CancelOnDrop { host: self, key: &key, call, armed: true };
        let reply = reply.await;
        guard.armed = false;
        Ok(match reply {
            Ok(Ok(value)) => ToolResult::from_reply(value),
            Ok(Err(error)) => ToolResult::failure(error.to_string()),
            Err(_) => ToolResult::failure(self.why_no_reply(&key, name)),
        })
    }

    /// Stops every extension, all at once. What they last said is in their logs then.
    pub async fn stop(&self) {
        let (isolates, attending): (Vec<_>, Vec<_>) = {
            let mut state = self.state();
            let extensions = state.extensions.values_mut();
            extensions
                .map(|extension| (extension.isolate.take(), extension.attending.take()))
                .unzip()
        };
        let stopping = isolates.into_iter().flatten().map(|isolate| tokio::spawn(isolate.stop()));
        for stopped in stopping.collect::<Vec<_>>() {
            // A panic in one must not keep the others from being waited for.
            let _ = stopped.await;
        }
        for attended in attending.into_iter().flatten() {
            // One that hangs in a system call has not said its last word; nobody waits for it.
            let _ = tokio::time::timeout(limits::STOP_DEADLINE, attended).await;
        }
        // The folder stays if an extension left something in it.
        let _ = std::fs::remove_dir(self.session_folder());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code of others runs under the lock, so the state is whole even after a panic.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session_folder(&self) -> PathBuf {
        self.0.options.home.join("session-state").join(&self.0.session_id)
    }

    /// Lists an extension and, if nothing speaks against it, starts it.
    fn add(&self, found: &Found) {
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
        let extension = Extension {
            info,
            isolate: None,
            attending: None,
            calls: HashMap::new(),
            log: Log::default(),
        };
        self.state().extensions.insert(key.clone(), extension);
        if start && let Ok(entry) = &found.entry {
            self.start(key, entry.clone());
        }
    }

    fn start(&self, key: Key, entry: PathBuf) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let spec = self.load_spec(&key, entry);
        let send = move |message| drop(sender.send(message));
        let started = self.0.launcher.start(spec, send);
        let mut state = self.state();
        let Some(extension) = state.extensions.get_mut(&key) else { return };
        match started {
            Ok(isolate) => {
                extension.isolate = Some(isolate);
                extension.info.generation += 1;
                let attending = tokio::spawn(attend(Arc::downgrade(&self.0), key, receiver));
                extension.attending = Some(attending);
            }
            Err(error) => {
                extension.info.fail(Status::Failed, LoadError::new(error.to_string(), None));
            }
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
            session: &self.session_folder(),
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
        entry: &std::path::Path,
        data: &std::path::Path,
    ) -> BTreeMap<String, String> {
        let mut env = environment::visible(environment::of_host(), config);
        let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
        env.insert("SESSION_ID".into(), self.0.session_id.clone());
        env.insert("COPILOT_HOME".into(), path(&self.0.options.home));
        env.insert("EXTENSION_PATH".into(), path(entry));
        env.insert("TENON_EXTENSION_DATA".into(), path(data));
        env
    }

    /// Takes note of what an isolate says.
    fn receive(&self, key: &Key, message: FromIsolate) {
        let mut state = self.state();
        let State { extensions, registry, .. } = &mut *state;
        let Some(extension) = extensions.get_mut(key) else { return };
        match message {
            FromIsolate::Log(record) => extension.log.push(record),
            FromIsolate::Reply { call, result } => {
                if let Some(waiting) = extension.calls.remove(&call) {
                    // The caller may have given up.
                    let _ = waiting.send(result);
                }
            }
            FromIsolate::Request { request, method, params } => {
                let result = self.answer(extension, registry, &method, params);
                if let Some(isolate) = &extension.isolate {
                    isolate.send(ToIsolate::Answer { request, result });
                }
            }
            FromIsolate::Ready(report) => {
                extension.info.ready = Some(report);
                extension.info.status = Status::Running;
                self.0.changed.send_modify(|count| *count += 1);
            }
            FromIsolate::Ended(reason) => {
                registry.remove(&extension.info.id);
                if let Some(error) = LoadError::from_end(reason) {
                    extension.log.push(LogRecord {
                        level: LogLevel::Error,
                        text: error.what.message.clone(),
                    });
                    extension.info.fail(Status::Failed, error);
                }
                extension.isolate = None;
                // Whoever waits for a reply learns that none will come.
                extension.calls.clear();
                self.0.changed.send_modify(|count| *count += 1);
            }
        }
    }

    /// Serves a request of an extension.
    fn answer(
        &self,
        extension: &mut Extension,
        registry: &mut Registry,
        method: &str,
        params: Value,
    ) -> Result<Value, String> {
        match method {
            "session.join" => self.join(extension, registry, params),
            "session.log" => {
                let level = match params["level"].as_str() {
                    Some("warning") => LogLevel::Warning,
                    Some("error") => LogLevel::Error,
                    _ => LogLevel::Info,
                };
                let text = params["message"].as_str().unwrap_or_default().to_owned();
                extension.log.push(LogRecord { level, text });
                Ok(Value::Null)
            }
            _ => Err(format!("{method} is not served by this host")),
        }
    }

    fn join(
        &self,
        extension: &mut Extension,
        registry: &mut Registry,
        params: Value,
    ) -> Result<Value, String> {
        let registration: Registration =
            serde_json::from_value(params).map_err(|error| format!("joinSession: {error}"))?;
        let info = &mut extension.info;
        let warnings = registry.register(&info.id, &info.path, &registration.tools)?;
        for text in warnings {
            extension.log.push(LogRecord { level: LogLevel::Warning, text });
        }
        info.register(registration);
        let folder = self.session_folder();
        let workspace_path = std::fs::create_dir_all(&folder).ok().map(|()| folder);
        Ok(json!({
            "sessionId": self.0.session_id,
            "workspacePath": workspace_path,
            "capabilities": { "ui": {} },
        }))
    }

    /// Sends a call to the extension that owns the tool.
    fn start_call(
        &self,
        name: &str,
        args: Value,
    ) -> Result<(Key, CallId, oneshot::Receiver<Reply>), CallError> {
        let mut state = self.state();
        let State { extensions, registry, next_call } = &mut *state;
        let unknown =
            || CallError::UnknownTool { name: name.to_owned(), available: registry.names() };
        let owner = registry.owner(name).ok_or_else(unknown)?;
        let (key, extension) = extensions
            .iter_mut()
            .find(|(_, extension)| extension.info.id == owner && extension.isolate.is_some())
            .ok_or_else(unknown)?;
        for mismatch in registry.mismatches(name, &args) {
            let text =
                format!("{name} was called with arguments that do not fit its schema: {mismatch}");
            extension.log.push(LogRecord { level: LogLevel::Warning, text });
        }
        *next_call += 1;
        let call = *next_call;
        let (sender, receiver) = oneshot::channel();
        extension.calls.insert(call, sender);
        let payload = json!({
            "name": name,
            "args": args,
            "toolCallId": format!("call-{call}"),
            "requestId": format!("request-{call}"),
            "sessionId": self.0.session_id,
        });
        if let Some(isolate) = &extension.isolate {
            isolate.send(ToIsolate::Call { call, kind: CallKind::Tool, payload });
        }
        Ok((key.clone(), call, receiver))
    }

    fn cancel(&self, key: &Key, call: CallId) {
        let mut state = self.state();
        if let Some(extension) = state.extensions.get_mut(key) {
            extension.calls.remove(&call);
            if let Some(isolate) = &extension.isolate {
                isolate.send(ToIsolate::Cancel { call, reason: "the call was cancelled".into() });
            }
        }
    }

    fn why_no_reply(&self, key: &Key, tool: &str) -> String {
        let state = self.state();
        let error = state.extensions.get(key).and_then(|extension| extension.info.error.as_ref());
        let id = format!("{}:{}", key.0, key.1);
        match error {
            Some(error) => format!("{id} ended before {tool} returned: {}", error.what.message),
            None => format!("{id} ended before {tool} returned"),
        }
    }
}

/// Listens to one isolate until it ends. A host that was dropped is not kept alive by its extensions.
async fn attend(host: Weak<Inner>, key: Key, mut messages: mpsc::UnboundedReceiver<FromIsolate>) {
    loop {
        let message = messages.recv().await.unwrap_or_else(|| {
            let message = "its thread ended without a word".to_owned();
            FromIsolate::Ended(EndReason::Setup { message })
        });
        let is_last = matches!(message, FromIsolate::Ended(_));
        let Some(inner) = host.upgrade() else { return };
        Host(inner).receive(&key, message);
        if is_last {
            return;
        }
    }
}

/// Tells the handler when nobody waits for it any more.
struct CancelOnDrop<'a> {
    host: &'a Host,
    key: &'a Key,
    call: CallId,
    armed: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.host.cancel(self.key, self.call);
        }
    }
}
