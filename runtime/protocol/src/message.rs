//! What crosses between an isolate's thread and the rest of the program.
//!
//! Every type here is plain data with serde on it and no engine type in it, so that the same
//! messages can travel over a channel inside one process or over a socket between two.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use crate::layers::Layers;

/// Identifies one call into an isolate; chosen by the caller, unique within that isolate.
pub type CallId = u64;

/// Identifies one request from an isolate to its host; chosen by the isolate.
pub type RequestId = u64;

/// What an isolate is told when it takes on an extension.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LoadSpec {
    /// `scope:name`, as shown to people and in every error.
    pub id: String,
    /// The entry file, absolute.
    pub entry: PathBuf,
    /// The session's working directory, absolute.
    pub cwd: PathBuf,
    /// The whole environment of the extension; nothing of the host's own is added.
    pub env: BTreeMap<String, String>,
    /// What the extension may touch.
    pub grant: Grant,
    /// Whether the extension must not run unless the kernel enforces the whole grant.
    pub sandbox_required: bool,
    /// Resource limits of this isolate.
    pub limits: IsolateLimits,
    /// What counts as a file from outside of the extension, and which of these must not be loaded.
    pub outside: Outside,
}

/// Files that an extension imports from outside of its folder, such as packages of the repository.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Outside {
    /// The extension's folder, without links: what a person approves is what is in it.
    pub folder: PathBuf,
    /// Set while an extension runs, or has run, that may do less and may have written them.
    pub refused_changes: Option<RefusedChanges>,
}

/// Which files from outside are not loaded: those that changed since a moment, unless their content is known.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct RefusedChanges {
    /// The extension that may do less.
    pub who: String,
    /// When it was started.
    pub since: FileTime,
    /// By path, the SHA-256 of contents that it did not write, or that a person has approved.
    pub accepted: BTreeMap<PathBuf, String>,
}

/// A moment by the clock that dates files: seconds since 1970, and nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileTime(pub i64, pub i64);

/// Resource limits of one isolate.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
pub struct IsolateLimits {
    /// The largest JavaScript heap, in bytes.
    pub heap_bytes: usize,
    /// The most memory outside the heap (array buffers, Wasm memories), in bytes.
    pub buffer_bytes: usize,
    /// The most memory of the whole process, in bytes.
    pub memory_bytes: usize,
    /// The most CPU time without returning to the event loop, in milliseconds.
    pub cpu_ms: u64,
    /// The most child processes at a time.
    pub children: usize,
    /// Log lines per second that are kept in the long run.
    pub log_lines_per_second: u32,
    /// The longest result of a tool, in characters.
    pub result_chars: usize,
    /// How long an extension may take from load to `joinSession`, in milliseconds.
    pub start_deadline_ms: u64,
    /// How long `exit` and `SIGTERM` handlers may take, in milliseconds.
    pub stop_deadline_ms: u64,
}

/// What an extension may touch. An empty deny list denies nothing; `None` in an allow list means
/// everything, an empty list nothing.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Grant {
    /// Paths that may be read, with everything below them.
    pub read: Access,
    /// Paths that may be written, with everything below them.
    pub write: Access,
    /// Hosts (`host` or `host:port`) that may be connected to or listened on.
    pub net: Access,
    /// Programs that may be started, by name or path.
    pub run: Access,
    /// Places that the kernel guards beside these lists.
    #[serde(default)]
    pub guarded: Guarded,
}

/// What the kernel guards whatever the lists of a grant say: Tenon's own folder, and what other programs run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Guarded {
    /// Not written, with everything below.
    pub frozen: Vec<String>,
    /// Written all the same where it lies in something frozen and in something that may be written.
    pub open: Vec<String>,
    /// Neither read, written nor connected to.
    pub closed: Vec<String>,
}

/// One permission: what is allowed, minus what is denied.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Access {
    /// `None`: everything. `Some([])`: nothing.
    pub allow: Option<Vec<String>>,
    /// Taken away from what is allowed.
    pub deny: Vec<String>,
}

impl Access {
    /// Everything is allowed.
    pub fn all() -> Self {
        Self::default()
    }

    /// Nothing is allowed.
    pub fn none() -> Self {
        Self { allow: Some(Vec::new()), deny: Vec::new() }
    }

    /// Only the given names or paths are allowed.
    pub fn only(names: impl IntoIterator<Item = String>) -> Self {
        Self { allow: Some(names.into_iter().collect()), deny: Vec::new() }
    }
}

/// From the host to an isolate.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToIsolate {
    /// Call something the extension registered.
    Call {
        /// The call's identity, echoed in [`FromIsolate::Reply`].
        call: CallId,
        /// What is called.
        kind: CallKind,
        /// Arguments, as the SDK expects them for that kind, in JSON: the engine reads a text much
        /// faster than values can be made for it one by one.
        payload: String,
    },
    /// Abort a call: its `invocation.signal` fires.
    Cancel {
        /// The call to abort.
        call: CallId,
        /// Shown as the signal's reason.
        reason: String,
    },
    /// The answer to a [`FromIsolate::Request`].
    Answer {
        /// The request that is answered.
        request: RequestId,
        /// The value, or a message that becomes a JavaScript `Error`.
        result: Result<Value, String>,
    },
    /// Session events the extension subscribed to; answered by [`FromIsolate::EventsSeen`].
    Events {
        /// A JSON array of events, as text: it is made once for all subscribers and parsed by each
        /// engine, which is far cheaper than making the values one by one.
        batch: String,
    },
    /// Say whether the start deadline counts: not while a person is asked about the extension.
    HoldStart {
        /// It does not count for now.
        held: bool,
    },
    /// Say what is used; answered by [`FromIsolate::Measured`].
    Measure,
    /// Run the extension's `SIGTERM` and `exit` handlers, then end.
    Stop,
}

/// What a [`ToIsolate::Call`] is aimed at.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// A tool handler.
    Tool,
    /// A hook.
    Hook,
    /// A slash command.
    Command,
    /// A canvas: open, action or close.
    Canvas,
    /// A handler that answers requests, such as `onPermissionRequest`.
    Handler,
    /// The platform itself: whether the extension listens on a port.
    Listens,
}

impl CallKind {
    /// The name the SDK dispatches on.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Hook => "hook",
            Self::Command => "command",
            Self::Canvas => "canvas",
            Self::Handler => "handler",
            Self::Listens => "listens",
        }
    }
}

/// From an isolate to its host.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromIsolate {
    /// The isolate exists and takes the extension on. Comes first.
    Started {
        /// The process it is in.
        pid: u32,
        /// What the kernel enforces of the grant.
        layers: Layers,
    },
    /// The extension asks for something; answered by [`ToIsolate::Answer`].
    Request {
        /// To be echoed in the answer.
        request: RequestId,
        /// What is asked, such as `session.join` or `session.log`.
        method: String,
        /// Its parameters.
        params: Value,
    },
    /// The outcome of a call.
    Reply {
        /// The call that ended.
        call: CallId,
        /// The handler's value in JSON, or what it threw.
        result: Result<String, ScriptError>,
    },
    /// Files were read as modules: all but packages inside of the extension's own folder.
    Loaded {
        /// Each with what was in it.
        files: Vec<LoadedFile>,
    },
    /// The handlers of a batch of events have run; the next batch may come.
    EventsSeen,
    /// Something for the extension's log.
    Log(LogRecord),
    /// What the isolate uses; the answer to [`ToIsolate::Measure`].
    Measured(IsolateUsage),
    /// The extension has joined and its module has run as far as it can.
    Ready(ReadyReport),
    /// The isolate has ended. Nothing follows.
    Ended(EndReason),
}

/// A file that was loaded as a module.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct LoadedFile {
    /// The file, after links were followed.
    pub path: PathBuf,
    /// SHA-256 of what was in it, in hexadecimal; nothing if it could not be read.
    pub hash: String,
    /// Whether it belongs to an installed package, which is not watched for changes.
    pub is_package: bool,
    /// Whether it was not loaded after all, because of [`RefusedChanges`].
    pub is_refused: bool,
}

/// What an isolate uses.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct IsolateUsage {
    /// CPU time of its thread since it was started, in microseconds.
    pub cpu_us: u64,
    /// Its heap when it last came to rest, in bytes.
    pub heap_bytes: u64,
    /// Its memory outside the heap then, in bytes.
    pub buffer_bytes: u64,
    /// The process it is in.
    pub pid: u32,
}

/// What getting ready cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyReport {
    /// Wall time from taking the extension on until ready, in microseconds.
    pub wall_us: u64,
    /// CPU time of the isolate's thread for the same, in microseconds.
    pub cpu_us: u64,
    /// What the extension runs on.
    pub engine: EngineName,
}

/// A JavaScript engine.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum EngineName {
    /// V8.
    V8,
    /// QuickJS-ng.
    QuickJs,
}

impl EngineName {
    /// The name as people write it on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V8 => "v8",
            Self::QuickJs => "quickjs",
        }
    }
}

impl std::fmt::Display for EngineName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One line, or several, for an extension's log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogRecord {
    /// How loud.
    pub level: LogLevel,
    /// The text without a final line break.
    pub text: String,
}

/// How loud a log record is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// `console.log`, and what is written to standard output or error.
    Info,
    /// Something the author should look at.
    Warning,
    /// `console.error` and failures.
    Error,
}

/// Why an isolate ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum EndReason {
    /// It was told to stop.
    Stopped,
    /// The module could not be loaded, threw, or a later error was not caught.
    Script(ScriptError),
    /// `process.exit` was called.
    Exited {
        /// The exit code.
        code: i32,
        /// Whether the extension had joined by then.
        joined: bool,
    },
    /// The module ran but `joinSession` was not called in time.
    NoJoin {
        /// The deadline that passed, in milliseconds.
        deadline_ms: u64,
    },
    /// The isolate was terminated from outside.
    Terminated {
        /// Why, in words.
        reason: String,
    },
    /// A limit was reached, so the isolate was terminated.
    Limit(Breach),
    /// Its process has died.
    ProcessDied {
        /// How, in words: the signal or exit code, and its last words.
        how: String,
        /// Whether the zygote died and took it along, which is nothing that it did itself.
        with_zygote: bool,
    },
    /// The isolate could not be set up.
    Setup {
        /// What went wrong.
        message: String,
    },
}

impl EndReason {
    /// The reason as far as an extension's own process can know it: not that the zygote has died.
    pub fn said_by_extension(self) -> Self {
        match self {
            Self::ProcessDied { how, .. } => Self::ProcessDied { how, with_zygote: false },
            other => other,
        }
    }

    /// Which of them it is, in a word and without what the extension said.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::Script(_) => "script error",
            Self::Exited { .. } => "exited",
            Self::NoJoin { .. } => "did not join",
            Self::Terminated { .. } => "terminated",
            Self::Limit(_) => "limit",
            Self::ProcessDied { .. } => "process died",
            Self::Setup { .. } => "set-up failed",
        }
    }
}

/// A limit that was reached.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Breach {
    /// The limit's name in the user's configuration, such as `heap-mb`.
    pub limit: String,
    /// The limit, in words: `its heap may have 512 MB`.
    pub allowed: String,
    /// The JavaScript stack where it stood, one frame a line; empty if no JavaScript ran.
    pub stack: String,
}

/// An error with the place it came from.
#[derive(Debug, Clone, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct ScriptError {
    /// The error's message, with its class: `TypeError: x is not a function`.
    pub message: String,
    /// The file, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// One-based line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// One-based column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// The text of that line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_line: Option<String>,
    /// The stack, one frame a line, without the engine's own frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<String>,
}

impl ScriptError {
    /// An error without a place.
    pub fn message(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)?;
        if let Some(file) = &self.file {
            write!(f, "\n    at {file}")?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
                if let Some(column) = self.column {
                    write!(f, ":{column}")?;
                }
            }
        }
        Ok(())
    }
}
