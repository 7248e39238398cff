//! Opening sessions: new ones, those of before, and copies.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tenon_host::session::EndReason;

use super::Proxy;
use super::Started;
use super::front::ClientFront;
use super::ids;
use super::live::LiveSession;
use super::notices;
use super::sessions;
use crate::agent::AgentStartError;
use crate::config::PermissionMode;
use crate::conversation::Conversation;
use crate::conversation::ConversationError;
use crate::conversation::ConversationOptions;
use crate::conversation::Start;
use crate::rpc::RpcError;

/// How long after our answer the client counts as knowing the session. The answer is queued as soon as it is
/// given; what the agent says of the session must not overtake it. A client that names the session earlier knows it
/// earlier.
const ANSWER_LEAD: Duration = Duration::from_millis(50);

/// What the client wants opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// A new session.
    New,
    /// One of before, and what was said in it.
    Load,
    /// One of before.
    Resume,
    /// A new one that begins with what was said in another. The agent makes it; then it is opened like one of
    /// before, so that it has its extensions.
    Fork,
}

impl Asked {
    /// Whether the client has a name for the session before we answer.
    fn is_known(self) -> bool {
        matches!(self, Self::Load | Self::Resume)
    }

    /// Whether what the agent says meanwhile is for the client.
    fn wants_replay(self) -> bool {
        matches!(self, Self::New | Self::Load)
    }
}

/// A session that is to be opened.
struct Plan {
    asked: Asked,
    /// What the client calls it.
    client_id: String,
    /// What we call it.
    own_id: String,
    start: Start,
    cwd: PathBuf,
    /// The client's parameters, without the id.
    params: Value,
}

impl Proxy {
    /// Opens a session for the client. A client that does not wait for it does not get it.
    pub async fn open(self: &Arc<Self>, asked: Asked, params: Value) -> Result<Value, RpcError> {
        let started = self.started()?;
        if !started.agent.is_alive() {
            let revived = started.agent.revive().await;
            revived.map_err(|error| RpcError::internal(error.to_string()))?;
        }
        // What is said of a copy before it is ours is kept.
        let opening = started.agent.opening();
        let plan = self.plan(started, asked, params).await?;
        let (reserved, before) = self.sessions.reserve(&plan.client_id)?;
        let proxy = self.clone();
        let opened = self.to_its_end(async move {
            // As long as it takes, nobody else opens it.
            let (_reserved, _opening) = (reserved, opening);
            if let Some(before) = before {
                before.close(EndReason::Complete).await;
            }
            proxy.begin(plan).await
        });
        let mut opened = opened.await??;
        opened.wanted = true;
        let live = opened.live.clone();
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_LEAD).await;
            live.front.known().await;
        });
        Ok(opened.answer.take())
    }

    async fn plan(
        &self,
        started: &Started,
        asked: Asked,
        mut params: Value,
    ) -> Result<Plan, RpcError> {
        if !params.is_object() {
            return Err(RpcError::invalid_params("the parameters must be an object"));
        }
        let fresh = || uuid::Uuid::new_v4().to_string();
        let named = || {
            let id = ids::session_of(&params).map(str::to_owned);
            id.ok_or_else(|| RpcError::invalid_params("`sessionId` is missing"))
        };
        let mut known_cwd = None;
        let (client_id, own_id, start) = match asked {
            Asked::New => {
                let id = fresh();
                (id.clone(), id, Start::New)
            }
            Asked::Load | Asked::Resume => {
                let id = named()?;
                match sessions::remembered(&self.options.home, self.agent(), &id)? {
                    Some(record) => {
                        known_cwd = Some(record.cwd);
                        (id, record.id, Start::Stored)
                    }
                    None => (id.clone(), fresh(), Start::Native(id)),
                }
            }
            Asked::Fork => {
                let id = named()?;
                let native = self.native_name(&id)?.unwrap_or(id);
                let mut fork = params.clone();
                ids::set_session(&mut fork, &native);
                let forked = started.agent.connection().request("session/fork", fork).await;
                let forked = forked.map_err(|error| self.describe(error))?;
                let Some(copy) = ids::session_of(&forked) else {
                    return Err(RpcError::internal(format!("no sessionId in {forked}")));
                };
                let id = fresh();
                (id.clone(), id, Start::Native(copy.to_owned()))
            }
        };
        let cwd = directory(&params, known_cwd)?;
        if let Some(params) = params.as_object_mut() {
            params.remove("sessionId");
        }
        Ok(Plan { asked, client_id, own_id, start, cwd, params })
    }

    async fn begin(self: &Arc<Self>, plan: Plan) -> Result<Opened, RpcError> {
        let Plan { asked, client_id, own_id, start, cwd, params } = plan;
        let started = self.started()?;
        let options = &self.options;
        let mut session = (options.session_options)(&cwd).map_err(RpcError::invalid_params)?;
        session.id = Some(own_id);
        let (notices, queued) = notices::queue();
        session.tap = Some(notices.tap());
        let front = Arc::new(ClientFront::new(
            self.client().await?,
            client_id.clone(),
            started.abilities,
            asked.is_known(),
            asked.wants_replay(),
        ));
        let permissions = options.permissions.or(options.definition.permissions);
        let conversation = Conversation::open(ConversationOptions {
            session,
            definition: options.definition.clone(),
            // The client is there to be asked.
            permissions: permissions.or(Some(PermissionMode::Ask)),
            front: Some(front.clone()),
            outer: Some(front.clone()),
            tenon: options.tenon.clone(),
            guarded: options.guarded,
            agent: Some(started.agent.clone()),
            client: started.client.clone(),
            start,
            replay: asked.wants_replay(),
            params,
        });
        let conversation = conversation.await.map_err(as_rpc)?;
        let mut answer = conversation.opened();
        if asked.is_known() {
            ids::rename(&mut answer, &conversation.acp_session_id(), &client_id);
        } else {
            ids::set_session(&mut answer, &client_id);
        }
        let live = LiveSession::new(conversation, front, notices, queued).await;
        if !self.sessions.insert(&client_id, live.clone()) {
            live.close(EndReason::UserExit).await;
            return Err(RpcError::closed());
        }
        Ok(Opened { proxy: self.clone(), live, answer, wanted: false })
    }
}

/// A session that was opened. If the client does not want it any more, it is closed.
struct Opened {
    proxy: Arc<Proxy>,
    live: Arc<LiveSession>,
    answer: Value,
    wanted: bool,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.wanted {
            return;
        }
        // Without a runtime everything is ending anyway.
        if let Some(live) = self.proxy.sessions.take(self.live.front.id())
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(async move { live.close(EndReason::Abort).await });
        }
    }
}

/// The directory that a session works in: what the client says, else what is known of it.
fn directory(params: &Value, known: Option<PathBuf>) -> Result<PathBuf, RpcError> {
    let cwd = match params["cwd"].as_str() {
        Some(cwd) => PathBuf::from(cwd),
        None => known.ok_or_else(|| RpcError::invalid_params("`cwd` is missing"))?,
    };
    let wrong =
        |why: &str| Err(RpcError::invalid_params(format!("`cwd`: {} is {why}", cwd.display())));
    if !cwd.is_absolute() {
        return wrong("not an absolute path");
    }
    if !cwd.is_dir() {
        return wrong("not a directory");
    }
    Ok(cwd)
}

/// Why there is no session, as the client is told: what the agent said, where it was the agent.
pub fn as_rpc(error: ConversationError) -> RpcError {
    match error {
        ConversationError::Agent(AgentStartError::Refused { error, .. }) if !error.is_closed() => {
            error
        }
        ConversationError::Unknown { .. } => {
            RpcError::new(RpcError::RESOURCE_NOT_FOUND, error.to_string())
        }
        ConversationError::OtherAgent { .. } => RpcError::invalid_params(error.to_string()),
        other => RpcError::internal(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_session_works_in_an_absolute_directory_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let given = json!({ "cwd": folder.path() });
        assert_eq!(directory(&given, None).unwrap(), folder.path());
        let known = Some(folder.path().to_owned());
        assert_eq!(directory(&json!({}), known).unwrap(), folder.path());
        for (params, why) in [
            (json!({}), "is missing"),
            (json!({ "cwd": "relative" }), "not an absolute path"),
            (json!({ "cwd": folder.path().join("gone") }), "not a directory"),
        ] {
            let refused = directory(&params, None).unwrap_err();
            assert_eq!(refused.code, RpcError::INVALID_PARAMS);
            assert!(refused.message.contains(why), "{refused}");
        }
    }

    #[test]
    fn what_the_agent_answered_reaches_the_client_with_its_code() {
        let said = RpcError { code: RpcError::AUTH_REQUIRED, message: "log in".into(), data: None };
        let refused = |error: RpcError| {
            as_rpc(ConversationError::Agent(AgentStartError::Refused {
                agent: "demo".to_owned(),
                method: "session/new".to_owned(),
                error,
                stderr: vec!["last words".to_owned()],
            }))
        };
        assert_eq!(refused(said.clone()), said);
        let gone = refused(RpcError::closed());
        assert_eq!(gone.code, RpcError::INTERNAL);
        assert!(gone.message.contains("last words"), "{gone}");
        let unknown = as_rpc(ConversationError::Unknown { id: "x".to_owned() });
        assert_eq!(unknown.code, RpcError::RESOURCE_NOT_FOUND);
    }
}
