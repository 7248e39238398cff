//! A session with an agent behind it: extensions, tools by MCP, the agent's process, the record. Every front
//! opens one of these.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::front::Front;
use tenon_host::session::EndReason;
use tenon_host::session::Message;
use tenon_host::session::PermissionCheck;
use tenon_host::session::SendError;
use tenon_host::session::SessionError;
use tenon_host::session::TurnEnd;

use crate::agent::AgentStartError;
use crate::agent::ClientInfo;
use crate::agent::Outer;
use crate::agent::RunningAgent;
use crate::bridge::Bridge;
use crate::bridge::OpeningParams;
use crate::bridge::Start as Opening;
use crate::config::PermissionMode;
use crate::definition::AgentDefinition;
use crate::endpoint::Endpoint;
use crate::endpoint::EndpointOptions;
use crate::launch::Launch;
use crate::launch::LaunchError;
use crate::policy::PolicyFront;
use crate::record;
use crate::record::SessionRecord;
use crate::rpc::RpcError;

/// The longest title that is remembered, in characters.
const MAX_TITLE: usize = 120;

/// How long an agent that others use may take to close a session.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// How a conversation begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Anew.
    New,
    /// With what is remembered of the session whose id is given in the session's options.
    Stored,
    /// With the session that the agent knows by this id.
    Native(String),
}

/// What a conversation is opened with.
pub struct ConversationOptions {
    /// The session; its agent and front are filled in.
    pub session: SessionOptions,
    /// The agent.
    pub definition: AgentDefinition,
    /// What is permitted in advance; the definition's, if none is given.
    pub permissions: Option<PermissionMode>,
    /// Where the person is.
    pub front: Option<Arc<dyn Front>>,
    /// An ACP client in front.
    pub outer: Option<Arc<dyn Outer>>,
    /// Our own binary.
    pub tenon: PathBuf,
    /// Whether the agent's process is guarded by ours: see [`crate::guard`].
    pub guarded: bool,
    /// An agent that other conversations use too; it is not stopped with this one.
    pub agent: Option<RunningAgent>,
    /// Who the agent is told that it talks to.
    pub client: ClientInfo,
    /// How it begins.
    pub start: Start,
    /// Whether whoever is in front wants to be told what was said earlier.
    pub replay: bool,
    /// More for `session/new`: the parameters of a client in front.
    pub params: Value,
}

/// A conversation could not be opened, or a prompt not be taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConversationError {
    /// The session could not be opened.
    #[error(transparent)]
    Session(Arc<SessionError>),
    /// The agent could not be started.
    #[error(transparent)]
    Agent(#[from] AgentStartError),
    /// The tools of extensions could not be offered.
    #[error("the tools of extensions cannot be offered: {0}")]
    Endpoint(Arc<std::io::Error>),
    /// Nothing is remembered of the session.
    #[error("there is no session {id} that could go on")]
    Unknown {
        /// Its id.
        id: String,
    },
    /// It was begun with another agent.
    #[error("session {id} was begun with {began}, not with {asked}")]
    OtherAgent {
        /// Its id.
        id: String,
        /// The agent it was begun with.
        began: String,
        /// The one asked for.
        asked: String,
    },
    /// The session takes no prompt.
    #[error(transparent)]
    Send(#[from] SendError),
}

impl From<SessionError> for ConversationError {
    fn from(error: SessionError) -> Self {
        Self::Session(Arc::new(error))
    }
}

impl From<LaunchError> for ConversationError {
    fn from(error: LaunchError) -> Self {
        Self::Agent(AgentStartError::Launch(Arc::new(error)))
    }
}

/// A session with an agent behind it.
pub struct Conversation {
    session: Session,
    bridge: Arc<Bridge>,
    endpoint: Arc<Endpoint>,
    agent: RunningAgent,
    /// Whether the agent belongs to others too.
    shared: bool,
    record: Arc<Mutex<SessionRecord>>,
    /// Whether it is remembered at all.
    remember: bool,
    home: PathBuf,
}

impl Conversation {
    /// Opens a conversation: extensions are loaded while the agent starts.
    pub async fn open(options: ConversationOptions) -> Result<Self, ConversationError> {
        let ConversationOptions { mut session, definition, outer, tenon, start, .. } = options;
        let home = session.home.clone();
        let stored = match (&start, &session.id) {
            (Start::Stored, Some(id)) => {
                let known = record::read(&home, id);
                Some(known.ok_or_else(|| ConversationError::Unknown { id: id.clone() })?)
            }
            (Start::Stored, None) => return Err(ConversationError::Unknown { id: String::new() }),
            _ => None,
        };
        if let Some(stored) = &stored
            && stored.agent != definition.name
        {
            return Err(ConversationError::OtherAgent {
                id: stored.id.clone(),
                began: stored.agent.clone(),
                asked: definition.name,
            });
        }
        let mut launch = Launch {
            definition: definition.clone(),
            cwd: session.cwd.clone(),
            additional_directories: definition.additional_directories.clone(),
            home: home.clone(),
            session_id: None,
            tenon: tenon.clone(),
            guarded: options.guarded,
            environment: tenon_host::environment::of_host(),
        };
        launch.validate()?;
        let permissions =
            options.permissions.or(definition.permissions).unwrap_or(PermissionMode::ApproveReads);
        let opening = OpeningParams {
            cwd: launch.cwd.clone(),
            additional_directories: launch.additional_directories.clone(),
            params: options.params,
            tenon,
            guarded: options.guarded,
            choose_mode: outer.is_none(),
            shared: options.agent.is_some(),
            replay: options.replay,
        };
        let bridge = Bridge::new(definition.clone(), permissions, outer.clone(), opening);
        session.agent = Some(bridge.clone());
        let mut roots = vec![launch.cwd.clone()];
        roots.extend(launch.additional_directories.iter().cloned());
        session.front = Some(Arc::new(PolicyFront::new(permissions, roots, options.front)));
        let (cwd, remember) = (session.cwd.clone(), session.record);
        let session = Session::new(session)?;
        launch.session_id = Some(session.id().to_owned());
        let mut client = options.client;
        if client.capabilities.is_null() {
            client.capabilities = bridge.capabilities();
        }
        let starting = async {
            match options.agent {
                Some(agent) => Ok((agent, true)),
                None => {
                    RunningAgent::start(launch, client, outer).await.map(|agent| (agent, false))
                }
            }
        };
        let ((), started) = tokio::join!(session.load(), starting);
        let (agent, shared) = match started {
            Ok(started) => started,
            Err(error) => {
                session.end(EndReason::Error(error.to_string())).await;
                return Err(error.into());
            }
        };
        let created = record::now();
        let record = stored.unwrap_or_else(|| SessionRecord {
            id: session.id().to_owned(),
            agent: definition.name.clone(),
            acp_session_id: None,
            cwd,
            title: None,
            created: created.clone(),
            updated: created,
        });
        let endpoint_options = EndpointOptions {
            reload: definition.reload,
            permission: PermissionCheck::Ask,
            address: None,
            token: None,
            run_dir: home.join("run"),
            turn_bound: true,
            initialize_only: true,
        };
        let opened = async {
            let endpoint = Endpoint::start(session.downgrade(), endpoint_options).await;
            let endpoint = endpoint.map_err(|error| ConversationError::Endpoint(error.into()))?;
            let endpoint = Arc::new(endpoint);
            bridge.set_endpoint(endpoint.clone());
            let opening = match (&start, &record.acp_session_id) {
                (Start::Native(id), _) => Opening::Foreign(id.clone()),
                (Start::Stored, Some(id)) => Opening::Known(id.clone()),
                _ => Opening::New,
            };
            let opened = bridge.open(agent.clone(), opening).await;
            if let Err(error) = opened {
                endpoint.close().await;
                return Err(ConversationError::from(error));
            }
            Ok(endpoint)
        };
        let endpoint = match opened.await {
            Ok(endpoint) => endpoint,
            Err(error) => {
                if !shared {
                    agent.stop().await;
                }
                session.end(EndReason::Error(error.to_string())).await;
                return Err(error);
            }
        };
        let record = Arc::new(Mutex::new(record));
        let conversation =
            Self { session, bridge, endpoint, agent, shared, record, remember, home };
        conversation.remember(None);
        conversation.watch_titles();
        Ok(conversation)
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What the agent answered when the session was opened.
    pub fn opened(&self) -> Value {
        self.bridge.opened()
    }

    /// The agent.
    pub fn agent(&self) -> RunningAgent {
        self.agent.clone()
    }

    /// What the agent calls the session.
    pub fn acp_session_id(&self) -> String {
        self.bridge.acp_id()
    }

    /// Where the tools of extensions are offered.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Has the agent work on a message, and waits for the end of the turn.
    pub async fn prompt(&self, message: Message) -> Result<TurnEnd, ConversationError> {
        let title: String = message.prompt.lines().next().unwrap_or_default().trim().to_owned();
        let end = self.session.send_and_wait(message).await?;
        self.remember(Some(title));
        Ok(end)
    }

    /// Asks the agent something about this session.
    pub async fn agent_request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        self.bridge.agent_request(method, params).await
    }

    /// Tells the agent something about this session.
    pub async fn agent_notify(&self, method: &str, params: Value) -> Result<(), RpcError> {
        self.bridge.agent_notify(method, params).await
    }

    /// The agent's modes: `currentModeId` and `availableModes`, or null.
    pub fn modes(&self) -> Value {
        self.bridge.modes()
    }

    /// Has the agent work in another of its modes.
    pub async fn set_mode(&self, mode: &str) -> Result<(), RpcError> {
        self.bridge.choose_mode(mode).await
    }

    /// The agent's models, each with an `id`.
    pub fn models(&self) -> Vec<Value> {
        self.bridge.known_models()
    }

    /// The model in use, if the agent says so.
    pub fn current_model(&self) -> Option<String> {
        self.bridge.current_model()
    }

    /// Has the agent use another model.
    pub async fn set_model(&self, model: &str) -> Result<(), RpcError> {
        self.bridge.choose_model(model).await?;
        self.session.model_changed(model, None);
        Ok(())
    }

    /// The agent's own commands.
    pub fn agent_commands(&self) -> Vec<Value> {
        self.bridge.commands()
    }

    /// Ends the session and stops the agent, unless others use it.
    pub async fn close(&self, reason: EndReason) {
        self.session.end(reason).await;
        self.remember(None);
        self.endpoint.close().await;
        if self.shared {
            let capabilities = self.agent.capabilities();
            if capabilities["sessionCapabilities"].get("close").is_some() && self.agent.is_alive() {
                // Tidiness; an agent that cannot is left alone.
                let closing = self.bridge.agent_request("session/close", Value::Null);
                let _ = tokio::time::timeout(CLOSE_PATIENCE, closing).await;
            }
        } else {
            self.agent.stop().await;
        }
    }

    /// Writes down where the session stands. The first prompt is its title until the agent has a better one.
    fn remember(&self, title: Option<String>) {
        if !self.remember {
            return;
        }
        let record = {
            let mut record = self.record.lock();
            record.acp_session_id = Some(self.bridge.acp_id());
            record.updated = record::now();
            if let Some(title) = title.filter(|title| !title.is_empty())
                && record.title.is_none()
            {
                record.title = Some(title.chars().take(MAX_TITLE).collect());
            }
            record.clone()
        };
        save(&self.session, &self.home, &record);
    }

    /// Takes over the titles that the agent gives.
    fn watch_titles(&self) {
        if !self.remember {
            return;
        }
        let record = self.record.clone();
        self.session.tap(move |event| {
            if event.kind == "session.title_changed"
                && let Some(title) = event.data["title"].as_str()
            {
                // Written with the end of the turn.
                let mut record = record.lock();
                record.title = Some(title.chars().take(MAX_TITLE).collect());
            }
        });
    }
}

fn save(session: &Session, home: &std::path::Path, record: &SessionRecord) {
    if let Err(error) = record::write(home, record) {
        let message = format!("the session cannot be resumed later: {error}");
        let data = serde_json::json!({ "warningType": "not_remembered", "message": message });
        session.emit("session.warning", data);
    }
}
