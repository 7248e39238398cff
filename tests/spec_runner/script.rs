//! `script.jsonl`: a header, then actions, one JSON object per line.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Map;
use serde_json::Value;
use tenon_host::front::Decision;
use tenon_host::front::Elicitation;
use tenon_host::front::ElicitationAnswer;
use tenon_host::front::ErrorContext;
use tenon_host::front::Question;
use tenon_host::front::UserAnswer;

/// What a case is about and what it runs with.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Header {
    /// One sentence.
    pub about: String,
    /// The members of `contract.txt` that the case shows.
    #[serde(default)]
    pub covers: Vec<String>,
    /// The events that the transcript shows, as globs.
    #[serde(default)]
    pub show: Vec<String>,
    /// The engines it runs on; all unless given.
    engines: Option<Vec<String>>,
    /// What the front can do.
    #[serde(default)]
    pub front: Setting<FrontSetting>,
    /// What the agent can do.
    #[serde(default)]
    pub agent: Setting<AgentSetting>,
    /// What the front answers while extensions are loaded.
    #[serde(default)]
    pub answers: Vec<Reply>,
    /// Environment variables of the host.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Tools that the agent has of its own.
    #[serde(default)]
    pub built_in_tools: Vec<String>,
    /// Models that the agent has.
    #[serde(default)]
    pub models: Vec<Value>,
    /// From how many bytes on a result goes to a file.
    pub large_result_bytes: Option<usize>,
    /// Whether the agent gets tools to manage extensions.
    #[serde(default)]
    pub manage_tools: bool,
    /// Whether extensions are loaded again when their files change.
    #[serde(default)]
    pub watch: bool,
}

impl Header {
    /// Whether the case is for an engine.
    pub fn runs_on(&self, engine: &str) -> bool {
        self.engines.as_ref().is_none_or(|engines| engines.iter().any(|name| name == engine))
    }
}

/// Something that can be left out of a session, with `"none"`.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Setting<T> {
    /// There is one.
    Some(T),
    /// There is none.
    None(Absent),
}

impl<T: Default> Default for Setting<T> {
    fn default() -> Self {
        Self::Some(T::default())
    }
}

impl<T> Setting<T> {
    /// What there is.
    pub fn present(&self) -> Option<&T> {
        match self {
            Self::Some(setting) => Some(setting),
            Self::None(_) => None,
        }
    }
}

/// The word `none`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Absent {
    /// `none`.
    None,
}

/// What the front can do. Everything, unless the header says otherwise.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FrontSetting {
    /// It can show forms.
    #[serde(default)]
    pub elicitation: bool,
    /// It can show pages.
    #[serde(default)]
    pub canvases: bool,
}

impl Default for FrontSetting {
    fn default() -> Self {
        Self { elicitation: true, canvases: true }
    }
}

/// What the agent can do. Everything, unless the header says otherwise.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentSetting {
    /// It takes messages while it works.
    #[serde(default)]
    pub steer: bool,
}

impl Default for AgentSetting {
    fn default() -> Self {
        Self { steer: true }
    }
}

/// An enumeration whose JSON is an object; its first key says which variant it is.
macro_rules! by_first_key {
    ($(#[$about:meta])* $name:ident { $($key:literal => $variant:ident($type:ty),)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Deserialize)]
        #[serde(try_from = "Value")]
        pub enum $name {
            $(#[doc = concat!("`", $key, "`")] $variant($type),)*
        }

        impl TryFrom<Value> for $name {
            type Error = String;

            fn try_from(value: Value) -> Result<Self, String> {
                let Some(key) = value.as_object().and_then(|object| object.keys().next()).cloned() else {
                    return Err(format!("{value} should be an object whose first key says what it is"));
                };
                match key.as_str() {
                    $($key => serde_json::from_value(value).map(Self::$variant),)*
                    _ => return Err(format!("\"{key}\" is none of: {}", [$($key),*].join(", "))),
                }
                .map_err(|error| format!("\"{key}\": {error}"))
            }
        }
    };
}

by_first_key! {
    /// What the script does.
    Action {
        "turn" => Turn(Turn),
        "prompt" => Prompt(Outgoing),
        "send" => Send(Outgoing),
        "idle" => Idle(IgnoredAny),
        "begin" => Begin(Begin),
        "call" => Call(Call),
        "parallel" => Parallel(Parallel),
        "cancelCall" => CancelCall(CancelCall),
        "command" => Command(Command),
        "answer" => Answer(Answer),
        "permission" => Permission(Permission),
        "ask" => Ask(Ask),
        "elicit" => Elicit(Elicit),
        "request" => Request(OtherRequest),
        "canvas" => Canvas(CanvasAction),
        "emit" => Emit(Emit),
        "abort" => Abort(Abort),
        "await" => Await(Await),
        "signal" => Signal(Signal),
        "end" => End(End),
        "reopen" => Reopen(IgnoredAny),
        "tools" => Tools(IgnoredAny),
        "commands" => Commands(IgnoredAny),
        "canvases" => Canvases(IgnoredAny),
        "openCanvases" => OpenCanvases(IgnoredAny),
        "extensions" => Extensions(IgnoredAny),
        "events" => Events(IgnoredAny),
        "file" => File(File),
        "log" => Log(Log),
    }
}

by_first_key! {
    /// What the scripted agent does with a prompt.
    Step {
        "say" => Say(Say),
        "delta" => Delta(Delta),
        "think" => Think(Think),
        "usage" => Usage(Usage),
        "call" => Call(Call),
        "parallel" => Parallel(Parallel),
        "own" => Own(Box<Own>),
        "permission" => Permission(Permission),
        "ask" => Ask(Ask),
        "elicit" => Elicit(Elicit),
        "request" => Request(OtherRequest),
        "subagent" => Subagent(SubagentStep),
        "emit" => Emit(Emit),
        "await" => Await(Await),
        "wait" => Wait(Wait),
        "hang" => Hang(IgnoredAny),
        "fail" => Fail(Fail),
        "stop" => Stop(Stop),
    }
}

by_first_key! {
    /// What is done with a canvas.
    Canvas {
        "open" => Open(OpenCanvas),
        "action" => Action(InvokeCanvas),
        "close" => Close(CloseCanvas),
    }
}

/// Declares the structs behind the keys.
macro_rules! parameters {
    ($($name:ident { $($(#[$about:meta])* $field:ident: $type:ty,)* })*) => {
        $(
            #[doc = concat!("The parameters of a `", stringify!($name), "`.")]
            #[derive(Debug, Clone, Deserialize)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            pub struct $name {
                $($(#[$about])* pub $field: $type,)*
            }
        )*
    };
}

parameters! {
    Turn { turn: Vec<Step>, }
    Outgoing {
        #[serde(alias = "prompt", alias = "send")]
        text: String,
        mode: Option<Mode>,
        #[serde(default)]
        attachments: Vec<Value>,
        display_prompt: Option<String>,
        agent_mode: Option<String>,
        source: Option<String>,
    }
    Begin { begin: Start, initial_prompt: Option<String>, }
    Call {
        call: String,
        #[serde(default = "nothing")]
        args: Value,
        id: Option<String>,
        agent: Option<String>,
        #[serde(default)]
        permission: Asking,
    }
    Parallel { parallel: Vec<Call>, }
    CancelCall { cancel_call: Call, after: String, }
    Command {
        command: String,
        #[serde(default)]
        args: String,
    }
    Answer { answer: Reply, wait: Option<String>, }
    Permission { permission: Value, }
    Ask { ask: Question, }
    Elicit { elicit: Elicitation, asker: Option<String>, }
    OtherRequest {
        request: OtherKind,
        #[serde(default = "nothing")]
        data: Value,
    }
    CanvasAction { canvas: Canvas, }
    OpenCanvas { open: String, instance: Option<String>, extension: Option<String>, input: Option<Value>, }
    InvokeCanvas { action: String, instance: String, input: Option<Value>, }
    CloseCanvas { close: String, }
    Emit {
        emit: String,
        #[serde(default = "nothing")]
        data: Value,
        #[serde(default)]
        ephemeral: bool,
    }
    Abort { abort: String, }
    Await {
        r#await: String,
        r#where: Option<Value>,
    }
    Signal { signal: String, }
    End { end: Ending, error: Option<String>, }
    File {
        file: String,
        #[serde(default)]
        r#in: Place,
    }
    Log { log: String, }

    Say { say: String, }
    Delta { delta: String, }
    Think { think: String, }
    Usage { usage: Value, }
    Own {
        own: String,
        #[serde(default = "nothing")]
        args: Value,
        id: Option<String>,
        #[serde(default)]
        result: String,
        failure: Option<String>,
        agent: Option<String>,
        native: Option<Native>,
        mcp: Option<Mcp>,
    }
    Native { name: String, args: Value, }
    Mcp { server: String, tool: String, meta: Option<Value>, }
    SubagentStep { subagent: Subagent, }
    Subagent {
        name: String,
        kind: Option<String>,
        id: Option<String>,
        #[serde(default)]
        response: String,
        failure: Option<String>,
        stop_reason: Option<String>,
    }
    Wait { wait: String, }
    Fail {
        fail: String,
        #[serde(default = "model_call")]
        context: ErrorContext,
        #[serde(default)]
        recoverable: bool,
    }
    Stop { stop: String, }
}

/// When a message reaches the agent.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// After what is being done.
    Enqueue,
    /// Into what is being done.
    Immediate,
}

/// How a session begins.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Start {
    /// Fresh.
    New,
    /// Again.
    Resume,
    /// With the program.
    Startup,
}

/// Whether a call needs a permission.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asking {
    /// It has one already.
    #[default]
    Granted,
    /// It is asked for.
    Ask,
}

/// What the front will answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Reply {
    /// To a permission request.
    Permission(Decision),
    /// To a form.
    Elicit(ElicitationAnswer),
    /// To a question.
    Ask(UserAnswer),
    /// To anything else.
    Other(Value),
}

/// Requests that are not asked in a way of their own, by the handlers that extensions have for them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub enum OtherKind {
    /// May the agent leave the plan mode?
    #[serde(rename = "onExitPlanModeRequest")]
    ExitPlanMode,
    /// Should it go on with another model?
    #[serde(rename = "onAutoModeSwitchRequest")]
    AutoModeSwitch,
}

/// Why a session ends.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// Everything is done.
    Complete,
    /// Something went wrong.
    Error,
    /// The person stopped it.
    Abort,
    /// It took too long.
    Timeout,
    /// The person left.
    UserExit,
}

/// Where a file lies.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// In the session's folder.
    #[default]
    Session,
    /// In the working directory.
    Workspace,
    /// In Tenon's own folder.
    Home,
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

fn model_call() -> ErrorContext {
    ErrorContext::ModelCall
}

/// A line of the script that does something.
#[derive(Debug, Clone)]
pub struct Line {
    /// As it is written.
    pub json: Value,
    /// What it means.
    pub action: Action,
}

/// Reads a script: the header, and what follows it. An error names the line.
pub fn read(script: &str) -> Result<(Header, Vec<Line>), String> {
    let mut lines = script
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with("//"));
    let (number, header) = lines.next().ok_or("script.jsonl is empty")?;
    let header = serde_json::from_str(header)
        .map_err(|error| format!("script.jsonl:{number}: not a header: {error}"))?;
    let action = |(number, line): (usize, &str)| {
        let wrong = |error: String| format!("script.jsonl:{number}: {error}");
        let json: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
        let action = Action::try_from(json.clone()).map_err(wrong)?;
        Ok(Line { json, action })
    };
    Ok((header, lines.map(action).collect::<Result<_, String>>()?))
}
