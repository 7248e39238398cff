//! Opening the session on the agent: a new one, or one that it knows from before.

use std::time::Duration;

use serde_json::Value;
use serde_json::json;

use super::Bridge;
use super::Replay;
use crate::agent::AgentSession;
use crate::agent::AgentStartError;
use crate::agent::RunningAgent;
use crate::config::McpTransport;
use crate::endpoint::SERVER_NAME;
use crate::rpc::RpcError;

/// How long it must be quiet before what is told of earlier is taken to be complete.
const REPLAY_PAUSE: Duration = Duration::from_millis(150);

/// How long that is waited for.
const REPLAY_PATIENCE: Duration = Duration::from_secs(5);

/// How a session is opened on the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// A new one.
    New,
    /// The one that the agent knows by this id; a new one if it does not any more.
    Known(String),
    /// The one that the agent knows by this id, or none.
    Foreign(String),
}

impl Bridge {
    /// Opens the session; the answer of the agent is kept.
    pub async fn open(&self, agent: RunningAgent, start: Start) -> Result<(), AgentStartError> {
        let _opening = agent.opening();
        let epoch = agent.epoch();
        {
            let mut state = self.state();
            // Until it is open, it is open nowhere.
            state.epoch = 0;
            state.agent = Some(agent.clone());
            state.turn = None;
            state.deaf = false;
        }
        if let Start::Known(id) | Start::Foreign(id) = &start {
            match self.go_on(&agent, id).await? {
                Ok(()) => {
                    self.state().epoch = epoch;
                    return self.settle(&agent).await;
                }
                Err((method, error))
                    if !is_missing(&error) || matches!(start, Start::Foreign(_)) =>
                {
                    return Err(agent.refusal(method, self.without_token(error)).await);
                }
                Err(_) => {
                    agent.unregister(id);
                    let message = format!(
                        "{} does not know its session {id} any more; it begins a new one and remembers nothing",
                        self.definition.name
                    );
                    self.warn("agent_session_lost", &message);
                }
            }
        }
        let opened = match agent.ask("session/new", self.params(&agent)).await? {
            Ok(opened) => opened,
            Err(error) => {
                return Err(agent.refusal("session/new", self.without_token(error)).await);
            }
        };
        let Some(id) = opened["sessionId"].as_str().map(str::to_owned) else {
            let error = RpcError::internal(format!("the answer has no sessionId: {opened}"));
            return Err(agent.refusal("session/new", error).await);
        };
        self.state().instructed = false;
        self.is_open(&id, opened);
        self.state().epoch = epoch;
        agent.register(&id, self.me.clone()).await;
        self.settle(&agent).await
    }

    /// Goes on with a session that the agent knows; the inner error is the agent's answer.
    async fn go_on(
        &self,
        agent: &RunningAgent,
        id: &str,
    ) -> Result<Result<(), (&'static str, RpcError)>, AgentStartError> {
        let capabilities = agent.capabilities();
        let can_load = capabilities["loadSession"] == true;
        let can_resume = capabilities["sessionCapabilities"].get("resume").is_some();
        let was_open = self.state().was_open;
        let wanted = self.opening.replay && !was_open;
        let replay = if wanted { Replay::Told } else { Replay::Known };
        let method = match (can_load, can_resume) {
            (true, false) => "session/load",
            (true, true) if wanted => "session/load",
            (_, true) => "session/resume",
            // It has died, and its session with it.
            (false, false) if was_open => {
                let error = RpcError::new(RpcError::RESOURCE_NOT_FOUND, "it keeps no sessions");
                return Ok(Err(("session/load", error)));
            }
            (false, false) => {
                return Err(AgentStartError::NoLoad { agent: self.definition.name.clone() });
            }
        };
        let mut params = self.params(agent);
        params["sessionId"] = id.into();
        {
            let mut state = self.state();
            state.replaying = Some(replay);
            state.acp_id = id.to_owned();
        }
        agent.register(id, self.me.clone()).await;
        let answer = match agent.ask(method, params).await {
            Ok(answer) => answer,
            Err(silent) => {
                self.state().replaying = None;
                return Err(silent);
            }
        };
        if answer.is_ok() && method == "session/load" {
            self.replayed().await;
        }
        self.state().replaying = None;
        Ok(match answer {
            Ok(opened) => {
                // One that died over its first prompt may not have been told.
                self.state().instructed |= !was_open;
                self.is_open(id, opened);
                Ok(())
            }
            Err(error) => Err((method, error)),
        })
    }

    /// An error without the token of our endpoint: some agents send back what they were asked.
    fn without_token(&self, mut error: RpcError) -> RpcError {
        if let Some(endpoint) = self.endpoint.get() {
            let hide = |text: String| text.replace(endpoint.token(), "[token]");
            error.message = hide(error.message);
            let data = error.data.take().map(|data| hide(data.to_string()));
            error.data = data.and_then(|data| serde_json::from_str(&data).ok());
        }
        error
    }

    fn is_open(&self, id: &str, opened: Value) {
        {
            let mut state = self.state();
            state.acp_id = id.to_owned();
            state.was_open = true;
            state.current_mode = None;
            state.config_options = opened["configOptions"].clone();
            state.opened = opened;
        }
    }

    /// Waits for the end of what is told of earlier. Some agents answer before they tell it.
    async fn replayed(&self) {
        let quiet = async {
            loop {
                let before = self.state().updates;
                tokio::time::sleep(REPLAY_PAUSE).await;
                if self.state().updates == before {
                    break;
                }
            }
        };
        // An agent that never stops telling has begun to say something new.
        let _ = tokio::time::timeout(REPLAY_PATIENCE, quiet).await;
    }

    /// Mode and model as they are wanted.
    async fn settle(&self, agent: &RunningAgent) -> Result<(), AgentStartError> {
        let method = "session/set_mode";
        match agent.in_time(method, self.settled()).await? {
            Ok(()) => Ok(()),
            Err(error) => Err(agent.refusal(method, error).await),
        }
    }

    async fn settled(&self) -> Result<(), RpcError> {
        if let Err(error) = self.settle_mode().await {
            if error.is_closed() {
                return Err(error);
            }
            self.warn("agent_mode", &error.to_string());
        }
        if let (Some(session), Some(mode)) =
            (self.session(), self.modes()["currentModeId"].as_str())
        {
            self.mode_is(&session, mode);
        }
        let kept = self.state().kept_model.clone();
        if let Some(model) = kept.as_ref().or(self.definition.model.as_ref())
            && self.current_model().as_ref() != Some(model)
            && let Err(error) = self.choose_model(model).await
        {
            if error.is_closed() {
                return Err(error);
            }
            self.warn("agent_model", &error.to_string());
        }
        if let (Some(session), Some(model)) = (self.session(), self.current_model()) {
            session.model_changed(&model, None);
        }
        Ok(())
    }

    /// What the session is opened with: what the client in front wants, our tools, our directories.
    fn params(&self, agent: &RunningAgent) -> Value {
        let opening = &self.opening;
        let mut params =
            if opening.params.is_object() { opening.params.clone() } else { json!({}) };
        merge(&mut params, &self.definition.session_params);
        params["cwd"] = opening.cwd.to_string_lossy().into();
        let mut servers = params["mcpServers"].as_array().cloned().unwrap_or_default();
        servers.extend(self.definition.mcp_servers.iter().cloned());
        let given = servers.len();
        // A tool of the server of our name is taken for one of ours.
        servers.retain(|server| server["name"] != SERVER_NAME);
        if servers.len() < given {
            let message =
                format!("an MCP server called \"{SERVER_NAME}\" was left out: it is our name");
            self.warn("mcp_server_name", &message);
        }
        if let Some(endpoint) = self.endpoint.get() {
            let http = agent.capabilities()["mcpCapabilities"]["http"] == true;
            let transport = match self.definition.mcp {
                McpTransport::Http if http => McpTransport::Http,
                _ => McpTransport::Stdio,
            };
            servers.push(endpoint.acp_server(transport, &opening.tenon));
        }
        params["mcpServers"] = servers.into();
        if !opening.additional_directories.is_empty() {
            let mut all = params["additionalDirectories"].as_array().cloned().unwrap_or_default();
            for directory in &opening.additional_directories {
                let directory = Value::from(directory.to_string_lossy());
                if !all.contains(&directory) {
                    all.push(directory);
                }
            }
            // Agents that do not know the field ignore it.
            params["additionalDirectories"] = all.into();
        }
        params
    }
}

/// Adds fields to an object, and to the objects in it; what is there stays.
fn merge(into: &mut Value, more: &Value) {
    let Some(more) = more.as_object() else { return };
    if !into.is_object() && !into.is_null() {
        return;
    }
    for (name, value) in more {
        match into.get_mut(name) {
            Some(there) => merge(there, value),
            None => into[name.as_str()] = value.clone(),
        }
    }
}

/// Whether the answer says that there is no such session. Agents agree on no code for it.
fn is_missing(error: &RpcError) -> bool {
    if error.code == RpcError::RESOURCE_NOT_FOUND {
        return true;
    }
    if error.is_closed() || error.code == RpcError::AUTH_REQUIRED {
        return false;
    }
    let data = error.data.as_ref().map(Value::to_string).unwrap_or_default();
    let said = format!("{} {data}", error.message).to_lowercase();
    let phrases = [
        "not found",
        "no such session",
        "no previous sessions",
        "unknown session",
        "does not exist",
        "no rollout found",
        "no conversation found",
        "invalid session",
        "valid session id",
        "\"service\":\"session\"",
    ];
    phrases.iter().any(|phrase| said.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_session_is_recognised_by_what_agents_say() {
        let missing = |code, message: &str, data: Value| {
            is_missing(&RpcError { code, message: message.to_owned(), data: Some(data) })
        };
        assert!(missing(-32002, "Resource not found", json!({ "sessionId": "x" })));
        assert!(missing(
            -32603,
            "Internal error",
            json!({ "details": "no rollout found for thread id 0" })
        ));
        assert!(missing(
            -32603,
            "Internal error: OpenCode service failure",
            json!({ "service": "session" })
        ));
        assert!(!missing(-32603, "Internal error", json!({ "details": "disk full" })));
        assert!(!missing(-32000, "Authentication required", Value::Null));
    }

    #[test]
    fn more_fields_are_added_and_none_is_replaced() {
        let mut params = json!({ "_meta": { "a": 1 }, "cwd": "/x" });
        merge(&mut params, &json!({ "_meta": { "a": 2, "b": { "c": 3 } }, "cwd": "/y" }));
        assert_eq!(params, json!({ "_meta": { "a": 1, "b": { "c": 3 } }, "cwd": "/x" }));
        let mut odd = json!({ "_meta": "text" });
        merge(&mut odd, &json!({ "_meta": { "a": 2 } }));
        assert_eq!(odd, json!({ "_meta": "text" }));
    }
}
