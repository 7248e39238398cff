//! `tenon acp`: an ACP agent for any client, with the real agent behind it.
//!
//! The client talks to the agent as if nothing were between: what is not known here passes both ways as it is.
//! What is known is what extensions have a part in. Every session of the client is a [`Conversation`] with
//! extensions of its own; all share one process of the agent, and are called by our ids, or by the ids the
//! client brings along.
//!
//! [`Conversation`]: crate::conversation::Conversation

mod commands;
mod front;
mod ids;
mod live;
mod messages;
mod notices;
mod opening;
mod prompt;
mod questions;
mod requests;
mod sessions;
mod update_sender;

use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::json;
use tenon_host::SessionOptions;
use tenon_host::session::EndReason;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::sync::OnceCell;
use tokio::sync::oneshot;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::agent::AgentStartError;
use crate::agent::ClientInfo;
use crate::agent::RunningAgent;
use crate::config::PermissionMode;
use crate::definition::AgentDefinition;
use crate::launch::Launch;
use crate::rpc::Connection;
use crate::rpc::Handler;
use crate::rpc::RpcError;
use front::Sessionless;
use opening::Asked;
use questions::Abilities;
use sessions::Sessions;

/// How long sessions may take to end before the agent is stopped, and once more after it. Ending runs hooks, and
/// asks the agent to close each session.
const END_DEADLINE: Duration = Duration::from_secs(10);

/// What the sessions of a client are opened with, by their working directory.
pub type MakeOptions = dyn Fn(&Path) -> Result<SessionOptions, String> + Send + Sync;

/// What is between which client and which agent.
pub struct ProxyOptions {
    /// The agent.
    pub definition: AgentDefinition,
    /// What is permitted in advance; the definition's, if none is given, and else the client is asked.
    pub permissions: Option<PermissionMode>,
    /// Our own binary.
    pub tenon: PathBuf,
    /// Whether the agent's process is guarded by ours: see [`crate::guard`].
    pub guarded: bool,
    /// Tenon's own folder.
    pub home: PathBuf,
    /// What a session in a directory is opened with; an error says why there can be none.
    pub session_options: Arc<MakeOptions>,
}

/// A client could not be served at all.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The agent would have no place to work in.
    #[error("the current directory is gone: {0}")]
    WorkingDirectory(#[source] std::io::Error),
}

/// Serves a client until it is gone; every session has ended then, and the agent has stopped.
pub async fn serve(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    options: ProxyOptions,
) -> Result<(), ProxyError> {
    serve_until(reader, writer, options, std::future::pending()).await
}

/// The same, until `stop` at the latest.
pub async fn serve_until(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    options: ProxyOptions,
    stop: impl Future<Output = ()>,
) -> Result<(), ProxyError> {
    let cwd = std::env::current_dir().map_err(ProxyError::WorkingDirectory)?;
    let proxy = Arc::new(Proxy {
        options,
        cwd,
        client: watch::Sender::new(None),
        started: OnceCell::new(),
        sessions: Arc::default(),
        tasks: Mutex::default(),
    });
    let client = Connection::new(reader, writer, Arc::new(Served(proxy.clone())));
    proxy.client.send_replace(Some(client.clone()));
    tokio::select! {
        () = client.closed() => {}
        () = stop => {}
    }
    proxy.end().await;
    client.close().await;
    // The connection keeps us, and we kept the connection.
    proxy.client.send_replace(None);
    Ok(())
}

/// Everything between one client and one agent.
struct Proxy {
    options: ProxyOptions,
    /// Where the agent is started.
    cwd: PathBuf,
    client: watch::Sender<Option<Connection>>,
    /// The agent, once the client has initialised.
    started: OnceCell<Started>,
    sessions: Arc<Sessions>,
    /// What is done to its end, also if the client does not wait for it.
    tasks: Mutex<JoinSet<()>>,
}

/// The agent, and what the client said of itself.
struct Started {
    agent: RunningAgent,
    client: ClientInfo,
    abilities: Abilities,
}

impl Proxy {
    /// The connection to the client. Its first message may come before we have it.
    async fn client(&self) -> Result<Connection, RpcError> {
        let mut client = self.client.subscribe();
        // The sender lives as long as we do.
        let set = client.wait_for(Option::is_some).await;
        set.ok().and_then(|client| client.clone()).ok_or_else(RpcError::closed)
    }

    fn started(&self) -> Result<&Started, RpcError> {
        let missing = || RpcError::new(RpcError::INVALID_REQUEST, "`initialize` comes first");
        self.started.get().ok_or_else(missing)
    }

    /// The agent's name.
    fn agent(&self) -> &str {
        &self.options.definition.name
    }

    async fn initialize(&self, params: Value) -> Result<Value, RpcError> {
        if !params.is_object() {
            return Err(RpcError::invalid_params("`initialize` needs an object"));
        }
        let started = self.started.get_or_try_init(|| self.start(params)).await?;
        Ok(introduced(started.agent.initialized(), self.agent()))
    }

    async fn start(&self, params: Value) -> Result<Started, RpcError> {
        let outer = Arc::new(Sessionless(self.client().await?));
        let mut capabilities = match &params["clientCapabilities"] {
            Value::Null => json!({}),
            given => given.clone(),
        };
        if let Some(capabilities) = capabilities.as_object_mut() {
            // What sub-agents do is to be asked about in the session they belong to, where the hooks are.
            capabilities.remove("subagents");
        }
        let own_name = |field: &str| params["clientInfo"][field].as_str().map(str::to_owned);
        let client = ClientInfo {
            name: own_name("name").unwrap_or_else(|| "tenon".to_owned()),
            version: own_name("version").unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
            capabilities: capabilities.clone(),
            initialize: params,
        };
        let options = &self.options;
        let mut launch = Launch {
            definition: options.definition.clone(),
            cwd: self.cwd.clone(),
            additional_directories: Vec::new(),
            home: options.home.clone(),
            session_id: None,
            tenon: options.tenon.clone(),
            guarded: options.guarded,
            environment: tenon_host::environment::of_host(),
        };
        let failed = |error: AgentStartError| {
            let code = match &error {
                AgentStartError::Refused { error, .. } => error.code,
                _ => RpcError::INTERNAL,
            };
            RpcError::new(code, error.to_string())
        };
        let validated = launch.validate();
        validated.map_err(|error| failed(AgentStartError::Launch(Arc::new(error))))?;
        let agent = RunningAgent::start(launch, client.clone(), Some(outer)).await;
        let agent = agent.map_err(failed)?;
        Ok(Started { agent, client, abilities: Abilities::of(&capabilities) })
    }

    /// Does something to its end, also if nobody waits for it any more.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, RpcError> {
        let (done, is_done) = oneshot::channel();
        {
            let mut tasks = self.tasks.lock();
            while tasks.try_join_next().is_some() {}
            tasks.spawn(async move {
                // Whoever asked may have gone.
                let _ = done.send(work.await);
            });
        }
        is_done.await.map_err(|_| RpcError::internal("internal error"))
    }

    /// The client is gone: ends every session, then the agent.
    async fn end(&self) {
        let live = self.sessions.end();
        let ending = live.iter().map(|live| live.close(EndReason::UserExit));
        let mut ended = std::pin::pin!(futures::future::join_all(ending));
        let in_time = tokio::time::timeout(END_DEADLINE, &mut ended).await.is_ok();
        if let Some(started) = self.started.get() {
            // Whoever still waits for it is told that it is gone.
            started.agent.stop().await;
        }
        if !in_time {
            let _ = tokio::time::timeout(END_DEADLINE, ended).await;
        }
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        let finished = async { while tasks.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(END_DEADLINE, finished).await;
    }
}

/// The agent's answer to `initialize`, with a word about who is between.
fn introduced(mut answer: Value, agent: &str) -> Value {
    if answer.is_object() {
        if !answer["_meta"].is_object() {
            answer["_meta"] = json!({});
        }
        answer["_meta"]["tenon"] = json!({ "version": env!("CARGO_PKG_VERSION"), "agent": agent });
    }
    answer
}

/// What the client asks and says.
struct Served(Arc<Proxy>);

#[async_trait]
impl Handler for Served {
    async fn notification(&self, method: String, params: Value) {
        self.0.notified(&method, params).await;
    }

    #[tracing::instrument(level = "debug", name = "request", skip_all, fields(method = %method))]
    async fn request(&self, method: String, params: Value) -> Result<Value, RpcError> {
        let proxy = &self.0;
        match &*method {
            "initialize" => proxy.initialize(params).await,
            "session/new" => proxy.open(Asked::New, params).await,
            "session/load" => proxy.open(Asked::Load, params).await,
            "session/resume" => proxy.open(Asked::Resume, params).await,
            "session/fork" => proxy.open(Asked::Fork, params).await,
            "session/list" => proxy.list(params).await,
            "session/close" | "session/delete" => proxy.close(&method, params).await,
            "session/prompt" => proxy.prompt(params).await,
            _ => proxy.forward(&method, params).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_answer_stays_and_says_who_is_between() {
        let answer = json!({
            "protocolVersion": 1,
            "agentInfo": { "name": "real" },
            "agentCapabilities": { "loadSession": false, "odd": 1 },
            "_meta": { "steering": true },
        });
        let told = introduced(answer.clone(), "demo");
        assert_eq!(told["_meta"]["tenon"]["agent"], "demo");
        assert_eq!(told["_meta"]["tenon"]["version"], env!("CARGO_PKG_VERSION"));
        assert_eq!(told["_meta"]["steering"], true);
        for field in ["protocolVersion", "agentInfo", "agentCapabilities"] {
            assert_eq!(told[field], answer[field]);
        }
        let plain = introduced(json!({ "protocolVersion": 1, "_meta": null }), "demo");
        assert_eq!(plain["_meta"]["tenon"]["agent"], "demo");
    }
}
