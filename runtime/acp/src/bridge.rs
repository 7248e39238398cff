//! One session of an agent, as the session's [`Agent`]: prompts go to it by ACP, and what it says becomes
//! events, hooks and questions to the person.

mod modes;
mod opening;
mod permission;
mod prompt;
mod prompt_params;
mod services;
mod tool_watch;
mod updates;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::Weak;

use async_trait::async_trait;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use serde_json::json;
use tenon_host::Session;
use tenon_host::front::AgentError;
use tenon_host::front::AgentPrompt;
use tenon_host::front::Answer;
use tenon_host::front::ErrorContext;
use tenon_host::session::Agent;
use tenon_host::session::Turn;
use tenon_host::session::WeakSession;
use tokio::task::JoinHandle;

use crate::agent::AgentSession;
use crate::agent::AgentStartError;
use crate::agent::Outer;
use crate::agent::RunningAgent;
use crate::client_services::ClientServices;
use crate::config::PermissionMode;
use crate::definition::AgentDefinition;
use crate::endpoint::Endpoint;
use crate::rpc::Connection;
use crate::rpc::RpcError;
pub use opening::Start;
use tool_watch::ToolWatch;
pub(crate) use updates::HISTORY;

/// What the fuzz targets call and nobody else outside of this module.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    use serde_json::Value;
    use tenon_host::tool::ToolResult;

    use super::tool_watch;

    /// Adds to an object, which is what is known of a call, what an update says.
    pub fn learn(call: &mut Value, update: &Value) {
        tool_watch::learn(call, update);
    }

    /// What a call came to.
    pub fn result_of(call: &Value, last: &Value, failed: bool) -> ToolResult {
        tool_watch::result_of(call, last, failed)
    }
}

/// One session of an agent.
pub struct Bridge {
    me: Weak<Self>,
    definition: AgentDefinition,
    permissions: PermissionMode,
    outer: Option<Arc<dyn Outer>>,
    session: OnceLock<WeakSession>,
    endpoint: OnceLock<Arc<Endpoint>>,
    services: ClientServices,
    opening: OpeningParams,
    state: Mutex<State>,
    tools: Mutex<HashMap<String, ToolWatch>>,
}

/// What every session on the agent is opened with.
pub struct OpeningParams {
    /// The working directory.
    pub cwd: PathBuf,
    /// More directories, resolved.
    pub additional_directories: Vec<PathBuf>,
    /// What a client in front wants; an object.
    pub params: Value,
    /// Our own binary, for agents whose MCP servers are programs.
    pub tenon: PathBuf,
    /// Whether commands that run for the agent are guarded by it.
    pub guarded: bool,
    /// Whether the modes of the agent are ours to choose, because nobody in front does.
    pub choose_mode: bool,
    /// Whether the agent's process serves other sessions too.
    pub shared: bool,
    /// Whether whoever is in front wants to be told what was said earlier in the session.
    pub replay: bool,
}

/// What becomes of what was said earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replay {
    /// It is told to whoever is in front.
    Told,
    /// It is known.
    Known,
}

#[derive(Default)]
struct State {
    agent: Option<RunningAgent>,
    /// Which of the agent's processes the session was opened on.
    epoch: u64,
    acp_id: String,
    turn: Option<Arc<Turn>>,
    /// The agent tells what was said earlier.
    replaying: Option<Replay>,
    /// The session has been open before: who is in front knows what was said.
    was_open: bool,
    /// The answer to `session/new`, `session/load` or `session/resume`.
    opened: Value,
    current_mode: Option<String>,
    /// What was chosen, or came about, since the session was first opened; for when it is opened again.
    kept_mode: Option<String>,
    kept_model: Option<String>,
    config_options: Value,
    commands: Vec<Value>,
    /// The agent is being told to stop.
    cancelling: Option<JoinHandle<()>>,
    /// The agent was told the startup prompt.
    instructed: bool,
    /// It has not stopped after it was told to.
    deaf: bool,
    /// Counts what the agent has told.
    updates: u64,
}

impl Bridge {
    /// A bridge to a session that is not open yet.
    pub fn new(
        definition: AgentDefinition,
        permissions: PermissionMode,
        outer: Option<Arc<dyn Outer>>,
        opening: OpeningParams,
    ) -> Arc<Self> {
        // A client in front serves its own files and terminals.
        let own = outer.is_none();
        let services = ClientServices::new(
            opening.cwd.clone(),
            own && definition.client_fs,
            own && definition.client_terminal,
            opening.guarded.then(|| opening.tenon.clone()),
        );
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            definition,
            permissions,
            outer,
            session: OnceLock::new(),
            endpoint: OnceLock::new(),
            services,
            opening,
            state: Mutex::default(),
            tools: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn watches(&self) -> MutexGuard<'_, HashMap<String, ToolWatch>> {
        self.tools.lock()
    }

    /// The session, while there is one.
    fn session(&self) -> Option<Session> {
        self.session.get()?.upgrade()
    }

    /// ACP `clientCapabilities` of a session without a client in front.
    pub fn capabilities(&self) -> Value {
        self.services.capabilities()
    }

    /// Where the tools of extensions are offered.
    pub fn set_endpoint(&self, endpoint: Arc<Endpoint>) {
        // There is one endpoint for each session; a second is not set.
        let _ = self.endpoint.set(endpoint);
    }

    /// The agent behind it, once it was opened.
    pub fn agent(&self) -> Option<RunningAgent> {
        self.state().agent.clone()
    }

    fn connection(&self) -> Option<Connection> {
        Some(self.state().agent.as_ref()?.connection())
    }

    /// What the agent calls the session.
    pub fn acp_id(&self) -> String {
        self.state().acp_id.clone()
    }

    /// What the agent answered when the session was opened, with mode and settings as they are now.
    pub fn opened(&self) -> Value {
        let state = self.state();
        let mut opened = state.opened.clone();
        if let (true, Some(mode)) = (opened["modes"].is_object(), &state.current_mode) {
            opened["modes"]["currentModeId"] = mode.as_str().into();
        }
        if opened["configOptions"].is_array() {
            opened["configOptions"] = state.config_options.clone();
        }
        opened
    }

    /// The agent's own commands.
    pub fn commands(&self) -> Vec<Value> {
        self.state().commands.clone()
    }

    /// Parameters of the agent for those who know the session by our id: extensions, by an event.
    fn with_our_id(&self, mut params: Value) -> Value {
        if let Some(session) = self.session()
            && params.get("sessionId").is_some()
        {
            params["sessionId"] = session.id().into();
        }
        params
    }

    /// Asks the agent something about this session. What is chosen with it holds from now on, whoever asks.
    pub async fn agent_request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let connection = self.connection().ok_or_else(RpcError::closed)?;
        let chosen = |field: &str| params[field].as_str().map(str::to_owned);
        let (mode, model) = (chosen("modeId"), chosen("modelId"));
        let answer = connection.request(method, self.with_agents_id(params)).await?;
        if let Some(session) = self.session() {
            self.chosen(&session, method, mode, model, &answer);
        }
        Ok(answer)
    }

    /// Tells the agent something about this session.
    pub async fn agent_notify(&self, method: &str, params: Value) -> Result<(), RpcError> {
        let connection = self.connection().ok_or_else(RpcError::closed)?;
        connection.notify(method, self.with_agents_id(params)).await
    }

    fn with_agents_id(&self, mut params: Value) -> Value {
        if !params.is_object() {
            params = json!({});
        }
        params["sessionId"] = self.acp_id().into();
        params
    }

    /// Makes sure that the agent lives and knows the session: one that has died is started again.
    async fn ensure_open(&self) -> Result<(), AgentError> {
        let agent = self.agent().ok_or_else(|| failure("the agent was not started".to_owned()))?;
        let starting = |error: AgentStartError| failure(error.to_string());
        if std::mem::take(&mut self.state().deaf) {
            if self.opening.shared {
                return Err(failure(format!(
                    "{} has not stopped working on the last prompt, although it was told to",
                    self.definition.name
                )));
            }
            // It may still be at work on what nobody wants any more.
            agent.stop().await;
        }
        if !agent.is_alive() {
            agent.revive().await.map_err(starting)?;
        }
        if self.state().epoch != agent.epoch() {
            let start = Start::Known(self.acp_id());
            self.open(agent, start).await.map_err(starting)?;
        }
        Ok(())
    }
}

fn failure(message: String) -> AgentError {
    AgentError { message, context: ErrorContext::System, recoverable: true, native: None }
}

#[async_trait]
impl AgentSession for Bridge {
    fn warn(&self, kind: &str, message: &str) {
        if let Some(session) = self.session() {
            session.emit("session.warning", json!({ "warningType": kind, "message": message }));
        }
    }

    async fn notification(&self, method: &str, params: Value) {
        if method == "session/update" {
            self.update(params).await;
        } else if let Some(outer) = &self.outer {
            outer.notification(method, params).await;
        }
    }

    async fn request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        if method == "session/request_permission" {
            return self.permission_requested(params).await;
        }
        if let Some(served) = self.serve_client_request(method, &params).await {
            return served;
        }
        let served = match &self.outer {
            Some(outer) => self.forward(outer, method, params).await,
            None => None,
        };
        served.unwrap_or_else(|| Err(RpcError::method_not_found(method)))
    }
}

#[async_trait]
impl Agent for Bridge {
    fn attach(&self, session: WeakSession) {
        // A bridge belongs to one session; a second does not get it.
        let _ = self.session.set(session);
    }

    async fn prompt(
        &self,
        turn: Arc<Turn>,
        prompt: Arc<AgentPrompt>,
    ) -> Result<Answer, AgentError> {
        self.ensure_open().await?;
        self.work_on(turn, &prompt).await
    }

    fn cancel(&self) {
        let Some(me) = self.me.upgrade() else { return };
        let cancelling = tokio::spawn(async move {
            // An agent that is gone has stopped.
            let _ = me.agent_notify("session/cancel", json!({})).await;
        });
        self.state().cancelling = Some(cancelling);
    }

    fn tools_changed(&self) {
        if let Some(endpoint) = self.endpoint.get() {
            endpoint.tools_changed();
        }
    }

    async fn close(&self) {
        self.services.close().await;
        if let Some(agent) = self.agent() {
            if self.state().turn.is_some() {
                let _ = self.agent_notify("session/cancel", json!({})).await;
            }
            agent.unregister(&self.acp_id());
        }
    }

    fn models(&self) -> Vec<Value> {
        self.known_models()
    }

    async fn set_model(&self, model: &str, _options: &Value) -> Result<(), String> {
        self.choose_model(model).await.map_err(|error| error.to_string())
    }

    async fn set_mode(&self, mode: &str) -> Result<(), String> {
        self.choose_copilot_mode(mode).await.map_err(|error| error.to_string())
    }
}
