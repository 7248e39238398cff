//! One extension as the host sees it.

mod hook;

use std::path::PathBuf;

use serde::Serialize;
use tenon_protocol::layers::Layers;
use tenon_protocol::message::Breach;
use tenon_protocol::message::EndReason;
use tenon_protocol::message::EngineName;
use tenon_protocol::message::ReadyReport;
use tenon_protocol::message::ScriptError;

pub use hook::Hook;

use crate::discovery::Found;
use crate::discovery::Scope;
use crate::limits::Limits;
use crate::tool::SharedTool;

/// Where an extension is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Its isolate is loading it.
    Starting,
    /// It has joined; its tools can be called.
    Running,
    /// It did not load, or ended by itself.
    Failed,
    /// Switched off: by the person, by an agent, or because it failed too often.
    Disabled,
    /// It was replaced or taken away, and finishes the calls it has.
    Draining,
    /// It lies in a workspace that the user has not trusted; nothing of it was executed.
    Untrusted,
    /// Another extension of the same name is used instead.
    Shadowed,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Failed => "failed",
            Self::Disabled => "disabled",
            Self::Draining => "draining",
            Self::Untrusted => "untrusted",
            Self::Shadowed => "shadowed",
        })
    }
}

/// Why an extension does not run: what happened, where, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoadError {
    /// What happened, and where.
    #[serde(flatten)]
    pub what: ScriptError,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl LoadError {
    /// An error without a place.
    pub fn new(message: impl Into<String>, hint: impl Into<Option<String>>) -> Self {
        Self { what: ScriptError::message(message), hint: hint.into() }
    }

    /// Why an isolate ended, as an error; `None` if it was told to.
    pub fn from_end(reason: EndReason) -> Option<Self> {
        Some(match reason {
            EndReason::Stopped => return None,
            EndReason::Script(what) => Self { what, hint: None },
            EndReason::Exited { code, joined: false } => Self::new(
                format!("the extension called process.exit({code}) while it was loading"),
                "an extension stays loaded; remove the call, or throw an error instead".to_owned(),
            ),
            EndReason::Exited { code, joined: true } => {
                Self::new(format!("the extension called process.exit({code})"), None)
            }
            EndReason::NoJoin { deadline_ms } => Self::new(
                format!(
                    "joinSession was not called within {} seconds",
                    deadline_ms as f64 / 1000.0
                ),
                "call `await joinSession({...})` at the top level; what takes longer can be done \
                 after it"
                    .to_owned(),
            ),
            EndReason::Terminated { reason } => {
                Self::new(format!("the extension was terminated: {reason}"), None)
            }
            EndReason::Limit(breach) => Self::from_breach(breach),
            EndReason::ProcessDied { how, .. } => {
                Self::new(format!("its process died: {how}"), None)
            }
            EndReason::Setup { message } => Self::new(message, None),
        })
    }

    /// A limit that was reached, with the place where the extension stood.
    fn from_breach(breach: Breach) -> Self {
        let Breach { limit, allowed, stack } = breach;
        let what = tenon_protocol::place::locate(ScriptError {
            message: format!("the extension was terminated: {allowed} (limit {limit})"),
            stack: (!stack.is_empty()).then_some(stack),
            ..ScriptError::default()
        });
        let hint = format!("the user's configuration can set {limit} for this extension");
        Self { what, hint: Some(hint) }
    }
}

/// What there is to know of an extension; the shape of `tenon ext list --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExtensionInfo {
    /// `scope:name`.
    pub id: String,
    /// The name of its folder.
    pub name: String,
    /// Its scope.
    pub source: Scope,
    /// Its entry file, or its folder where there is none.
    pub path: PathBuf,
    /// Where it is in its life.
    pub status: Status,
    /// Why it does not run, or why what is on disk now is not what runs.
    pub error: Option<LoadError>,
    /// Whether what is on disk waits for the person's approval; `error` says why.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_approval: bool,
    /// The last error there was, also after it runs again.
    pub last_error: Option<LoadError>,
    /// The tools it registered.
    pub tools: Vec<SharedTool>,
    /// The hooks it registered.
    pub hooks: Vec<HookDeclaration>,
    /// The slash commands it registered.
    pub commands: Vec<CommandDeclaration>,
    /// The canvases it registered.
    pub canvases: Vec<CanvasDeclaration>,
    /// How often it was loaded; zero if never.
    pub generation: u32,
    /// How often it failed since it was last well.
    pub failures: u32,
    /// What it may use, and how long it may take.
    pub limits: Limits,
    /// Where its log is kept.
    pub log_file: Option<PathBuf>,
    /// The process it runs in.
    pub pid: Option<u32>,
    /// What the kernel enforces of its grant.
    pub sandbox: Option<Layers>,
    /// The files it was loaded from.
    pub files: Vec<PathBuf>,
    /// SHA-256 of its entry file, in hexadecimal.
    pub hash: Option<String>,
    /// What it runs on, or last ran on.
    pub engine: Option<EngineName>,
    /// The handlers it registered, by name.
    pub handlers: Vec<String>,
    /// What getting ready cost; only of running extensions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready: Option<ReadyReport>,
}

/// A slash command as an extension declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct CommandDeclaration {
    /// Without the slash.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
}

/// A hook as an extension declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookDeclaration {
    /// Such as `onPreToolUse`.
    pub name: String,
    /// Whether the call is denied when the hook throws or does not answer.
    #[serde(default)]
    pub fail_closed: bool,
}

/// A canvas as an extension declares it.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanvasDeclaration {
    /// Unique within the extension.
    pub id: String,
    /// What to call it.
    #[serde(default)]
    pub display_name: String,
    /// What it shows.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of what it is opened with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<serde_json::Value>,
    /// What can be done with it.
    #[serde(default)]
    pub actions: Vec<CanvasAction>,
}

/// Something that can be done with a canvas.
#[derive(Debug, Clone, PartialEq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanvasAction {
    /// Unique within the canvas.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<serde_json::Value>,
}

/// What an extension passes to `joinSession`.
#[derive(Debug, Clone, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Registration {
    pub tools: Vec<SharedTool>,
    pub hooks: Vec<HookDeclaration>,
    pub commands: Vec<CommandDeclaration>,
    pub canvases: Vec<CanvasDeclaration>,
    pub handlers: Vec<String>,
    pub requested_environment_variables: Vec<String>,
    /// Events wanted from the beginning.
    pub subscribe: Vec<String>,
}

impl ExtensionInfo {
    /// An extension that was found and not loaded yet.
    pub fn new(found: &Found) -> Self {
        let path = found.entry.clone().unwrap_or_else(|_| found.folder.clone());
        Self {
            id: found.id(),
            name: found.name.clone(),
            source: found.scope,
            path,
            status: Status::Starting,
            error: None,
            waits_for_approval: false,
            last_error: None,
            failures: 0,
            limits: Limits::default(),
            log_file: None,
            pid: None,
            sandbox: None,
            files: Vec::new(),
            tools: Vec::new(),
            hooks: Vec::new(),
            commands: Vec::new(),
            canvases: Vec::new(),
            handlers: Vec::new(),
            generation: 0,
            hash: None,
            engine: None,
            ready: None,
        }
    }

    /// Takes over what the extension registered.
    pub(crate) fn register(&mut self, registration: &Registration) {
        self.tools = registration.tools.clone();
        self.hooks = registration.hooks.clone();
        self.commands = registration.commands.clone();
        self.canvases = registration.canvases.clone();
        self.handlers = registration.handlers.clone();
    }

    /// It does not run, for this reason. What it had registered is gone.
    pub(crate) fn fail(&mut self, status: Status, error: LoadError) {
        self.status = status;
        self.last_error = Some(error.clone());
        self.error = Some(error);
        self.pid = None;
        self.ready = None;
        self.register(&Registration::default());
    }
}

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
