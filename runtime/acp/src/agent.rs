//! A running agent: one process, one connection, any number of sessions. A dead one can be revived.

mod router;

use std::sync::Arc;
use std::sync::Weak;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use serde_json::json;

use crate::definition::AgentDefinition;
use crate::launch::Launch;
use crate::launch::LaunchError;
use crate::launch::Launched;
use crate::process::AgentProcess;
use crate::rpc::Connection;
use crate::rpc::RpcError;
use router::Router;

/// The version of ACP that is spoken.
const PROTOCOL_VERSION: u64 = 1;

/// How long an agent may take to answer `initialize`, unless its definition says otherwise. Some are installed
/// by their command when it runs for the first time.
pub const START_DEADLINE: Duration = Duration::from_secs(120);

/// How long after its end of output an agent's exit is waited for, to say how it ended.
const EXIT_PATIENCE: Duration = Duration::from_secs(10);

/// The most of an agent's further words about an error that a message carries, in characters. Some send the
/// whole request back.
const MAX_DETAILS: usize = 300;

/// How many lines of its standard error an error message carries.
const STDERR_LINES: usize = 8;

/// Who the agent talks to.
#[derive(Debug, Clone, Default)]
pub struct ClientInfo {
    /// The client's name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// ACP `clientCapabilities`.
    pub capabilities: Value,
    /// The parameters of `initialize` that a client in front sent; null if there is none.
    pub initialize: Value,
}

impl ClientInfo {
    /// Tenon itself, with nobody in front. What it can do for an agent is filled in by its definition.
    pub fn tenon() -> Self {
        Self {
            name: "tenon".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            capabilities: Value::Null,
            initialize: Value::Null,
        }
    }
}

/// What is in front of a session beyond [`tenon_host::front::Front`]: an ACP client behind the proxy. It gets the
/// parameters as the agent sent them, with the agent's ids of sessions: whoever sends them on puts its own in.
#[async_trait]
pub trait Outer: Send + Sync + 'static {
    /// A `session/update`, as the agent sent it.
    async fn update(&self, _params: Value) {}

    /// Another notification of the agent.
    async fn notification(&self, _method: &str, _params: Value) {}

    /// A request that is not served here. `None`: nobody serves it.
    async fn request(&self, _method: &str, _params: Value) -> Option<Result<Value, RpcError>> {
        None
    }
}

/// A session that was opened on an agent: what the agent says of it arrives here.
#[async_trait]
pub(crate) trait AgentSession: Send + Sync + 'static {
    /// A notification of the agent about this session.
    async fn notification(&self, method: &str, params: Value);

    /// A request of the agent about this session.
    async fn request(&self, method: &str, params: Value) -> Result<Value, RpcError>;

    /// Says that something is not as it should be.
    fn warn(&self, kind: &str, message: &str);
}

/// An agent could not be started.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AgentStartError {
    /// Before its process ran.
    #[error(transparent)]
    Launch(Arc<LaunchError>),
    /// Its process has ended.
    #[error("{agent} ended while it was starting: {how}{}", tail(stderr))]
    Exited {
        /// Its name.
        agent: String,
        /// Exit code or signal.
        how: String,
        /// The last lines of its standard error.
        stderr: Vec<String>,
    },
    /// It did not answer in time.
    #[error("{agent} did not answer `{method}` within {deadline:?}{}", tail(stderr))]
    Silent {
        /// Its name.
        agent: String,
        /// What it was asked.
        method: String,
        /// How long it was waited for.
        deadline: Duration,
        /// The last lines of its standard error, and of what it printed in place of messages.
        stderr: Vec<String>,
    },
    /// It answered with an error.
    #[error("{agent} refused `{method}`: {error}{}{}", more(error), tail(stderr))]
    Refused {
        /// Its name.
        agent: String,
        /// What it was asked.
        method: String,
        /// What it said.
        error: RpcError,
        /// The last lines of its standard error.
        stderr: Vec<String>,
    },
    /// It speaks another version of the protocol.
    #[error("{agent} speaks version {version} of ACP; this is version {PROTOCOL_VERSION}")]
    Version {
        /// Its name.
        agent: String,
        /// What it answered.
        version: Value,
    },
    /// It cannot go on with an earlier session.
    #[error(
        "{agent} cannot go on with an earlier session: it has neither session/load nor session/resume"
    )]
    NoLoad {
        /// Its name.
        agent: String,
    },
}

/// What an agent says beside the message of an error.
pub(crate) fn more(error: &RpcError) -> String {
    let text = match &error.data {
        None | Some(Value::Null) => return String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(data) => {
            let known = data["details"].as_str().or(data["message"].as_str());
            known.map_or_else(|| data.to_string(), str::to_owned)
        }
    };
    let cut: String = text.chars().take(MAX_DETAILS).collect();
    let rest = if cut.len() < text.len() { " ..." } else { "" };
    format!(" ({cut}{rest})")
}

/// The last lines of a standard error as the end of a message; nothing for none.
pub(crate) fn tail(lines: &[String]) -> String {
    let from = lines.len().saturating_sub(STDERR_LINES);
    lines[from..].iter().map(|line| format!("\n  | {line}")).collect()
}

/// An agent that was started. Clones are the same one.
#[derive(Clone)]
pub struct RunningAgent(Arc<Inner>);

struct Inner {
    launch: Launch,
    client: ClientInfo,
    router: Arc<Router>,
    current: Mutex<Current>,
    /// Held by whoever starts it again.
    reviving: tokio::sync::Mutex<()>,
}

#[derive(Clone)]
struct Current {
    process: AgentProcess,
    connection: Connection,
    initialized: Value,
    /// Counts the processes.
    epoch: u64,
}

impl RunningAgent {
    /// Starts an agent and initialises it. `outer` gets what belongs to no session.
    pub async fn start(
        launch: Launch,
        client: ClientInfo,
        outer: Option<Arc<dyn Outer>>,
    ) -> Result<Self, AgentStartError> {
        let router = Arc::new(Router::new(launch.definition.name.clone(), outer));
        let current = begin(&launch, &client, &router, 1).await?;
        let current = Mutex::new(current);
        let reviving = tokio::sync::Mutex::new(());
        Ok(Self(Arc::new(Inner { launch, client, router, current, reviving })))
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.0.current.lock()
    }

    /// What it answered to `initialize`.
    pub fn initialized(&self) -> Value {
        self.current().initialized.clone()
    }

    /// What it can do.
    pub fn capabilities(&self) -> Value {
        self.current().initialized["agentCapabilities"].clone()
    }

    /// What it was started from.
    pub fn definition(&self) -> &AgentDefinition {
        &self.0.launch.definition
    }

    /// Its process.
    pub fn process(&self) -> AgentProcess {
        self.current().process.clone()
    }

    /// The connection to it.
    pub fn connection(&self) -> Connection {
        self.current().connection.clone()
    }

    /// Which of its processes this is, counted from one.
    pub fn epoch(&self) -> u64 {
        self.current().epoch
    }

    /// Whether it can be asked something.
    pub fn is_alive(&self) -> bool {
        !self.connection().is_closed()
    }

    /// Starts it again if it has ended; its sessions have to be opened again on it.
    pub async fn revive(&self) -> Result<(), AgentStartError> {
        let _reviving = self.0.reviving.lock().await;
        if self.is_alive() {
            return Ok(());
        }
        self.stop().await;
        let epoch = self.epoch() + 1;
        let current = begin(&self.0.launch, &self.0.client, &self.0.router, epoch).await?;
        *self.current() = current;
        Ok(())
    }

    /// How it ended, with the last it said, once its output has.
    pub async fn obituary(&self) -> String {
        let process = self.process();
        let name = &self.definition().name;
        let how = match tokio::time::timeout(EXIT_PATIENCE, process.exited()).await {
            Ok(how) => format!("{name} ended unexpectedly: {how}"),
            Err(_) => format!("{name} closed its output and still runs"),
        };
        format!("{how}{}", tail(&process.last_stderr()))
    }

    /// Asks something that must be answered before a session can begin; the inner error is the agent's.
    pub(crate) async fn ask(
        &self,
        method: &str,
        params: Value,
    ) -> Result<Result<Value, RpcError>, AgentStartError> {
        let connection = self.connection();
        self.in_time(method, connection.request(method, params)).await
    }

    /// Waits for what must be answered before a session can begin.
    pub(crate) async fn in_time<T>(
        &self,
        method: &str,
        answer: impl Future<Output = T>,
    ) -> Result<T, AgentStartError> {
        let deadline = self.definition().start_deadline.unwrap_or(START_DEADLINE);
        tokio::time::timeout(deadline, answer).await.map_err(|_| AgentStartError::Silent {
            agent: self.definition().name.clone(),
            method: method.to_owned(),
            deadline,
            stderr: self.process().last_stderr(),
        })
    }

    /// It has answered a request with an error, or is gone.
    pub(crate) async fn refusal(&self, method: &str, error: RpcError) -> AgentStartError {
        let (agent, process) = (self.definition().name.clone(), self.process());
        if error.is_closed() {
            let exited = tokio::time::timeout(EXIT_PATIENCE, process.exited()).await;
            let how = exited.unwrap_or_else(|_| "it closed its output".to_owned());
            return AgentStartError::Exited { agent, how, stderr: process.last_stderr() };
        }
        let stderr = process.last_stderr();
        AgentStartError::Refused { agent, method: method.to_owned(), error, stderr }
    }

    /// Ends it: its input is closed, then it is waited for, then it is made to.
    pub async fn stop(&self) {
        let Current { process, connection, .. } = self.current().clone();
        connection.close().await;
        process.stop().await;
    }

    /// From now on what the agent says of this session arrives there.
    pub(crate) async fn register(&self, acp_id: &str, session: Weak<dyn AgentSession>) {
        self.0.router.register(acp_id, session).await;
    }

    /// A session is about to be opened; what is said of it before its id is known is kept.
    pub(crate) fn opening(&self) -> impl Drop + use<> {
        self.0.router.clone().opening()
    }

    /// The session is not ours any more.
    pub(crate) fn unregister(&self, acp_id: &str) {
        self.0.router.unregister(acp_id);
    }
}

async fn begin(
    launch: &Launch,
    client: &ClientInfo,
    router: &Arc<Router>,
    epoch: u64,
) -> Result<Current, AgentStartError> {
    let name = launch.definition.name.clone();
    let deadline = launch.definition.start_deadline.unwrap_or(START_DEADLINE);
    router.begin();
    let launched = launch.clone().start().map_err(|error| AgentStartError::Launch(error.into()))?;
    let Launched { stdin, stdout, process } = launched;
    let connection = Connection::new(stdout, stdin, router.clone());
    let mut params = match &client.initialize {
        Value::Null => json!({}),
        given => given.clone(),
    };
    params["protocolVersion"] = PROTOCOL_VERSION.into();
    params["clientCapabilities"] = client.capabilities.clone();
    if params.get("clientInfo").is_none() {
        params["clientInfo"] = json!({ "name": client.name, "version": client.version });
    }
    let answered = tokio::time::timeout(deadline, connection.request("initialize", params)).await;
    let last_words = || {
        let mut words = process.last_stderr();
        words.extend(router.last_garbage());
        words
    };
    let problem = match answered {
        Ok(Ok(initialized)) if initialized["protocolVersion"] == PROTOCOL_VERSION => {
            return Ok(Current { process, connection, initialized, epoch });
        }
        Ok(Ok(initialized)) => AgentStartError::Version {
            agent: name,
            version: initialized["protocolVersion"].clone(),
        },
        Ok(Err(error)) if error.is_closed() => {
            let exited = tokio::time::timeout(EXIT_PATIENCE, process.exited()).await;
            let how = exited.unwrap_or_else(|_| "it closed its output".to_owned());
            AgentStartError::Exited { agent: name, how, stderr: last_words() }
        }
        Ok(Err(error)) => AgentStartError::Refused {
            agent: name,
            method: "initialize".to_owned(),
            error,
            stderr: last_words(),
        },
        Err(_) => {
            let method = "initialize".to_owned();
            AgentStartError::Silent { agent: name, method, deadline, stderr: last_words() }
        }
    };
    connection.close().await;
    process.stop().await;
    Err(problem)
}
