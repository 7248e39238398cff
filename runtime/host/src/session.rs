//! One conversation: its extensions, its events, its turns. Any front and any agent can drive it.

mod agent;
mod baseline;
mod canvas;
mod canvas_tools;
mod command;
mod effects;
mod ending;
mod files;
mod generations;
mod join;
mod larger_grants;
mod launch;
mod manage_tools;
mod management;
mod message;
mod offers;
mod outcome;
mod own_tools;
mod pending;
mod permission;
mod ports;
mod questions;
mod queue;
mod quota;
mod reload;
mod requests;
mod rpc;
mod subagent;
mod survey;
mod tool_call;
mod tool_messages;
mod turn;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::Weak;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::time::SystemTime;

use serde_json::Value;
use serde_json::json;
use tokio::sync::watch;

pub use agent::Agent;
pub use canvas::CanvasFault;
pub use canvas::OpenCanvasRequest;
pub use command::CommandError;
pub use ending::EndReason;
use ending::Phase;
pub use manage_tools::RELOAD_TOOL;
pub use message::Delivery;
pub use message::MAX_QUEUED_PROMPTS;
pub use message::Message;
pub use message::SendError;
pub use message::TurnEnd;
pub use outcome::ToolOutcome;
pub use rpc::SERVED as SERVED_RPC;
pub use subagent::SubagentCall;
pub use subagent::SubagentEnd;
pub use tool_call::AgentTool;
pub use tool_call::CallError;
pub use tool_call::McpTool;
pub use tool_call::PermissionCheck;
pub use tool_call::ToolCall;
pub use tool_call::ToolListing;
pub use tool_call::Verdict;
pub use turn::MAX_CONSECUTIVE_BLOCKS;
pub use turn::Turn;

use crate::config::Config;
use crate::config::ConfigError;
use crate::discovery::Places;
use crate::events::Bus;
use crate::events::Event;
use crate::events::EventData;
use crate::events::Filter;
use crate::events::Journal;
use crate::events::JournalError;
use crate::events::Subscriber;
use crate::extension::ExtensionInfo;
use crate::extensions::Extensions;
use crate::front::Context;
use crate::front::Front;
use crate::hooks::Runner;
use crate::hooks::lifecycle::SessionStart;
use crate::isolates::Isolates;
use crate::layout;
use crate::log_files::LogFiles;
use crate::logs::LogLine;
use crate::supervision::Timing;
use crate::watch::Watcher;

/// Where and how a session works.
#[derive(Clone)]
pub struct SessionOptions {
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
    /// Where isolates live.
    pub isolates: Isolates,
    /// Whether extensions are loaded again when their files change.
    pub watch: bool,
    /// The pauses in an extension's life.
    pub timing: Timing,
    /// Whether the agent gets tools to manage extensions.
    pub manage_tools: bool,
    /// Whether the logs of extensions are kept in files below `home`.
    pub log_files: bool,
    /// The session to go on with; `None` begins a new one.
    pub id: Option<String>,
    /// Whether events are recorded in the session's folder, or in memory only.
    pub record: bool,
    /// The longest result text that an agent gets whole; more is put into a file. `None`: no limit.
    pub large_result_bytes: Option<usize>,
    /// What answers prompts.
    pub agent: Option<Arc<dyn Agent>>,
    /// Where the person is.
    pub front: Option<Arc<dyn Front>>,
    /// Looks at every event from the first on: see [`Session::tap`].
    pub tap: Option<Tap>,
}

/// Looks at events.
pub type Tap = Arc<dyn Fn(&Event) + Send + Sync>;

impl SessionOptions {
    /// A new session without agent, front and engine, that leaves nothing behind.
    pub fn new(cwd: PathBuf, home: PathBuf) -> Self {
        Self {
            cwd,
            home,
            user_folders: Vec::new(),
            extension_folders: Vec::new(),
            trusted: false,
            isolates: Isolates::none(),
            watch: false,
            timing: Timing::default(),
            manage_tools: true,
            log_files: false,
            id: None,
            record: false,
            large_result_bytes: None,
            agent: None,
            front: None,
            tap: None,
        }
    }
}

/// The longest result text that an agent gets whole, usually. The original draws the line here too.
pub const LARGE_RESULT_BYTES: usize = 20 * 1024;

/// A session could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The record cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// An id that is no name of a folder.
    #[error("\"{0}\" is not the id of a session")]
    BadId(String),
}

/// How a session came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartSource {
    /// It is new.
    New,
    /// An earlier one goes on.
    Resume,
    /// The program was started with it.
    Startup,
}

/// What a session knows of itself.
struct Facts {
    started: SystemTime,
    /// An earlier conversation goes on.
    resumed: bool,
    begun: bool,
    ended: bool,
    /// How many are loading extensions; what these offer is announced when all are done.
    loading: u32,
    name: Option<String>,
    mode: String,
    model: Option<String>,
    reasoning_effort: Option<String>,
    /// What extensions tell the agent before the next prompt.
    contexts: Vec<Context>,
    final_message: Option<String>,
    /// The last turn was aborted.
    aborted: bool,
    capabilities: Value,
    /// What was last said of the extensions.
    extensions_loaded: Value,
    user_requests: u64,
    /// What the last call of the model took: input and output.
    last_tokens: (u64, u64),
    usage: Value,
    /// How often in a row each sub-agent was kept going.
    subagent_blocks: HashMap<String, u32>,
    /// What was last said to be watched badly, or not at all.
    watch_problems: Vec<String>,
}

struct Inner {
    options: SessionOptions,
    config: Config,
    places: Places,
    id: String,
    folder: PathBuf,
    isolates: Isolates,
    log_files: Option<LogFiles>,
    watcher: OnceLock<Watcher>,
    /// The watcher is about to be told what to watch.
    rearming: AtomicBool,
    extensions: Extensions,
    bus: Bus,
    queue: queue::Queue,
    canvases: Mutex<Vec<crate::front::OpenCanvas>>,
    pending: pending::Pending,
    facts: Mutex<Facts>,
    /// Counts up with every abort; whatever belongs to a turn looks at it.
    aborts: watch::Sender<u64>,
    /// Calls that extensions have running.
    nested: AtomicUsize,
    /// What is being written of what it keeps.
    incoming: quota::Incoming,
    /// See there.
    larger_grants: Mutex<larger_grants::LargerGrants>,
    baselines: baseline::Baselines,
    /// Held while `onSessionStart` runs; true when it has.
    started: tokio::sync::Mutex<bool>,
    /// Held by whoever starts or stops extensions.
    lifecycle: tokio::sync::Mutex<()>,
    /// Whether it ends, or has ended.
    phase: watch::Sender<Phase>,
    runtime: tokio::runtime::Handle,
}

/// A session. Clones are the same one.
#[derive(Clone)]
pub struct Session(Arc<Inner>);

impl Session {
    /// A session with no extension loaded yet. Must be called inside a tokio runtime.
    pub fn new(options: SessionOptions) -> Result<Self, SessionError> {
        let config = Config::read(&options.home)?;
        let id = match &options.id {
            Some(id) if is_folder_name(id) => id.clone(),
            Some(id) => return Err(SessionError::BadId(id.clone())),
            None => uuid::Uuid::new_v4().to_string(),
        };
        let folder = layout::session(&options.home, &id);
        let own = folder.join("extensions");
        let places = Places::new(
            &options.cwd,
            &options.user_folders,
            &options.extension_folders,
            Some(&own),
        );
        let journal = if options.record { Journal::open(&folder)? } else { Journal::in_memory() };
        let history = if options.record { journal.reader().read()? } else { Vec::new() };
        let last = |kind: &str, field: &str| {
            let event = history.iter().rev().find(|event| event["type"] == kind)?;
            Some(event["data"][field].as_str()?.to_owned())
        };
        let facts = Facts {
            started: SystemTime::now(),
            resumed: !history.is_empty(),
            begun: false,
            ended: false,
            loading: 0,
            name: None,
            mode: last("session.mode_changed", "newMode")
                .unwrap_or_else(|| "interactive".to_owned()),
            model: last("session.model_change", "newModel"),
            reasoning_effort: None,
            contexts: Vec::new(),
            final_message: None,
            aborted: false,
            capabilities: Value::Null,
            extensions_loaded: Value::Null,
            user_requests: 0,
            last_tokens: (0, 0),
            usage: json!({}),
            subagent_blocks: HashMap::new(),
            watch_problems: Vec::new(),
        };
        let log_files = options.log_files.then(|| LogFiles::new(&options.home));
        let session = Self(Arc::new(Inner {
            config,
            places,
            id,
            folder,
            isolates: options.isolates.clone(),
            extensions: Extensions::new(log_files.clone()),
            log_files,
            watcher: OnceLock::new(),
            rearming: AtomicBool::new(false),
            bus: Bus::new(journal),
            queue: queue::Queue::default(),
            canvases: Mutex::default(),
            pending: pending::Pending::default(),
            facts: Mutex::new(facts),
            aborts: watch::Sender::new(0),
            nested: AtomicUsize::new(0),
            incoming: quota::Incoming::default(),
            larger_grants: Mutex::default(),
            baselines: baseline::Baselines::default(),
            started: tokio::sync::Mutex::new(false),
            lifecycle: tokio::sync::Mutex::new(()),
            phase: watch::Sender::new(Phase::Open),
            runtime: tokio::runtime::Handle::current(),
            options,
        }));
        if let Some(tap) = session.0.options.tap.clone() {
            session.tap(move |event| tap(event));
        }
        session.facts().capabilities = session.capabilities();
        session.watch_log_files();
        if let Some(agent) = &session.0.options.agent {
            agent.attach(session.downgrade());
        }
        Ok(session)
    }

    /// A session that does not keep itself alive, for those the session keeps alive.
    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.0))
    }

    /// Identifies the session.
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// Its folder: events, plan, files.
    pub fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// Its working directory.
    pub fn cwd(&self) -> &Path {
        &self.0.options.cwd
    }

    /// Where extensions were looked for.
    pub fn places(&self) -> &Places {
        &self.0.places
    }

    /// What starts its extensions.
    pub fn isolates(&self) -> &Isolates {
        &self.0.isolates
    }

    /// Waits until the zygote, if there is one, is ready.
    pub async fn wait_until_prepared(&self) {
        self.0.isolates.wait_until_prepared().await;
    }

    /// Every extension, by scope and name.
    pub fn list(&self) -> Vec<ExtensionInfo> {
        self.0.extensions.list()
    }

    /// The extensions with the given name or id.
    pub fn find(&self, name_or_id: &str) -> Vec<ExtensionInfo> {
        let matches = |info: &ExtensionInfo| info.name == name_or_id || info.id == name_or_id;
        self.list().into_iter().filter(matches).collect()
    }

    /// The log of an extension.
    pub fn log(&self, info: &ExtensionInfo) -> Vec<LogLine> {
        self.0.extensions.log(info)
    }

    /// Begins the conversation: `onSessionStart` runs, and what it says is told to the agent before the
    /// first prompt. A prompt does this by itself if it was not done.
    pub async fn begin(&self, source: StartSource, initial_prompt: Option<&str>) {
        let mut started = self.0.started.lock().await;
        if *started {
            return;
        }
        // The history may be long. It is read before the session has begun, so that what it begins with is said at once.
        let recorded = if source == StartSource::Resume && !self.facts().begun {
            self.on_disk(|session| session.0.bus.recorded().map_or(0, |events| events.len())).await
        } else {
            None
        };
        if !std::mem::replace(&mut self.facts().begun, true) {
            self.announce_start(source, recorded.unwrap_or_default());
        }
        let source = match source {
            StartSource::New => "new",
            StartSource::Resume => "resume",
            StartSource::Startup => "startup",
        };
        let chain = SessionStart {
            source,
            initial_prompt: initial_prompt.map(str::to_owned),
            contexts: Vec::new(),
        };
        let chain = self.hooks().run(chain).await;
        *started = true;
        self.facts().contexts.extend(chain.contexts);
    }

    /// Says that the session begins. One that is resumed has so many events before.
    fn announce_start(&self, source: StartSource, recorded: usize) {
        let time = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
        let context = json!({ "cwd": self.cwd() });
        if source == StartSource::Resume {
            let data = json!({ "resumeTime": time, "eventCount": recorded, "context": context });
            self.emit("session.resume", data);
        } else {
            let data = json!({
                "sessionId": self.id(),
                "startTime": time,
                "version": 1,
                "producer": "tenon",
                "copilotVersion": env!("CARGO_PKG_VERSION"),
                "context": context,
            });
            self.emit("session.start", data);
        }
    }

    /// Makes an event known to whoever wants it, and records it; returns its id.
    pub fn emit(&self, kind: &str, data: impl Into<EventData>) -> String {
        self.0.bus.emit(kind, data)
    }

    /// Makes an event known without recording it; returns its id.
    pub fn emit_ephemeral(&self, kind: &str, data: impl Into<EventData>) -> String {
        self.0.bus.emit_ephemeral(kind, data)
    }

    /// Looks at every event as it is emitted, in the emitter's thread. It must be quick and must not
    /// call the session; whoever needs more subscribes.
    pub fn tap(&self, tap: impl Fn(&Event) + Send + Sync + 'static) {
        self.0.bus.tap(tap);
    }

    /// Subscribes to events; `name` is told in the warning when the subscriber does not keep up.
    pub fn subscribe(&self, name: &str, filter: Filter) -> Arc<Subscriber> {
        self.0.bus.subscribe(name, filter)
    }

    /// Waits until extensions have seen every event so far. One that sleeps is waited for.
    pub async fn drained(&self) {
        self.0.bus.drained().await;
    }

    fn hooks(&self) -> Runner<'_> {
        let inner = &*self.0;
        Runner {
            extensions: &inner.extensions,
            view: inner.extensions.view(),
            bus: &inner.bus,
            session_id: &inner.id,
            cwd: &inner.options.cwd,
        }
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.facts.lock()
    }

    /// What the session can do for an extension: the public contract's `SessionCapabilities`.
    fn capabilities(&self) -> Value {
        let front =
            self.0.options.front.as_ref().map(|front| front.capabilities()).unwrap_or_default();
        let handler = "onElicitationRequest";
        let elicitation =
            front.elicitation || self.0.extensions.next_with_handler(None, handler).is_some();
        json!({ "ui": { "elicitation": elicitation, "canvases": front.canvases }, "extensions": true })
    }
}

/// A session that does not keep itself alive.
#[derive(Clone)]
pub struct WeakSession(Weak<Inner>);

impl WeakSession {
    /// The session, if somebody still has it.
    pub fn upgrade(&self) -> Option<Session> {
        self.0.upgrade().map(Session)
    }
}

/// Extensions are being loaded; what they offer is announced at the end, however it comes.
struct Loading<'a>(&'a Session);

impl<'a> Loading<'a> {
    fn new(session: &'a Session) -> Self {
        session.facts().loading += 1;
        Self(session)
    }
}

impl Drop for Loading<'_> {
    fn drop(&mut self) {
        self.0.facts().loading -= 1;
        self.0.announce_offers();
    }
}

/// Whether a session's id can be the name of its folder.
fn is_folder_name(id: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !id.is_empty() && id.chars().all(plain) && !id.starts_with('.')
}
