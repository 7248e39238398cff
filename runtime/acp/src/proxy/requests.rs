//! What the client asks about sessions that are open, and everything that only passes.

use std::sync::Arc;

use serde_json::Value;
use serde_json::json;
use tenon_host::session::EndReason;

use super::Proxy;
use super::ids;
use super::live::LiveSession;
use super::prompt;
use super::sessions;
use crate::record;
use crate::rpc::RpcError;

impl Proxy {
    /// The session that a message is about, if it is open. The client knows it, then.
    async fn live(&self, params: &Value) -> Option<Arc<LiveSession>> {
        let live = self.sessions.get(ids::session_of(params)?)?;
        live.front.known().await;
        Some(live)
    }

    /// What the agent calls a session that the client names; `None` if we do not know it.
    pub fn native_name(&self, id: &str) -> Result<Option<String>, RpcError> {
        if let Some(live) = self.sessions.get(id) {
            return Ok(Some(live.conversation.acp_session_id()));
        }
        let record = sessions::remembered(&self.options.home, self.agent(), id)?;
        Ok(record.and_then(|record| record.acp_session_id))
    }

    /// A notification of the client.
    pub async fn notified(&self, method: &str, params: Value) {
        let live = self.live(&params).await;
        // An agent that is gone misses nothing.
        let _ = match (live, method) {
            (Some(live), "session/cancel") => {
                live.cancel().await;
                Ok(())
            }
            (Some(live), _) => live.conversation.agent_notify(method, params).await,
            (None, _) => match self.started() {
                Ok(started) => started.agent.connection().notify(method, params).await,
                Err(error) => Err(error),
            },
        };
    }

    /// A prompt. One for a session that is not open here is refused: the agent would work on it without
    /// extensions.
    pub async fn prompt(&self, params: Value) -> Result<Value, RpcError> {
        self.started()?;
        let Some(live) = self.live(&params).await else {
            let id = ids::session_of(&params).unwrap_or_default();
            let message =
                format!("session \"{id}\" is not open; session/new or session/load opens one");
            return Err(RpcError::new(RpcError::RESOURCE_NOT_FOUND, message));
        };
        prompt::run(&live, params).await
    }

    /// The sessions that the agent knows, by the names that the client knows.
    pub async fn list(&self, params: Value) -> Result<Value, RpcError> {
        let mut answer = self.forward("session/list", params).await?;
        let records = record::list(&self.options.home);
        let names = sessions::names(self.sessions.client_names(), records, self.agent());
        ids::rename_listed(&mut answer, |native| names.get(native).cloned());
        Ok(answer)
    }

    /// Closes a session, or deletes it: the agent first, then we. An agent that is gone has closed it.
    pub async fn close(self: &Arc<Self>, method: &str, params: Value) -> Result<Value, RpcError> {
        let id = ids::session_of(&params).unwrap_or_default().to_owned();
        let own_id = match self.sessions.get(&id) {
            Some(live) => Some(live.session().id().to_owned()),
            None => {
                let record = sessions::remembered(&self.options.home, self.agent(), &id)?;
                record.map(|record| record.id)
            }
        };
        let is_open = self.sessions.get(&id).is_some();
        let answer = match self.pass(method, params).await {
            Ok(answer) => answer,
            Err(error) if error.is_closed() && is_open => json!({}),
            Err(error) => return Err(self.describe(error)),
        };
        let (proxy, delete) = (self.clone(), method == "session/delete");
        let closed = self.to_its_end(async move {
            if let Some(live) = proxy.sessions.take(&id) {
                live.close(EndReason::Complete).await;
            }
            match own_id {
                Some(own_id) if delete => record::delete(&proxy.options.home, &own_id),
                _ => Ok(()),
            }
        });
        closed.await?.map_err(|error| {
            RpcError::internal(format!("the record of the session could not be deleted: {error}"))
        })?;
        Ok(answer)
    }

    /// Everything else: the agent answers it.
    pub async fn forward(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        self.pass(method, params).await.map_err(|error| self.describe(error))
    }

    /// Asks the agent, in its own words for sessions, and answers in the client's.
    async fn pass(&self, method: &str, mut params: Value) -> Result<Value, RpcError> {
        let agent = &self.started()?.agent;
        let Some(id) = ids::session_of(&params).map(str::to_owned) else {
            return agent.connection().request(method, params).await;
        };
        let Some(native) = self.native_name(&id)? else {
            return agent.connection().request(method, params).await;
        };
        let answer = match self.live(&params).await {
            Some(live) => live.conversation.agent_request(method, params).await,
            None => {
                ids::set_session(&mut params, &native);
                agent.connection().request(method, params).await
            }
        };
        answer.map(|mut answer| {
            ids::rename(&mut answer, &native, &id);
            answer
        })
    }

    /// An error of the agent as the client is told.
    pub fn describe(&self, error: RpcError) -> RpcError {
        if error.is_closed() {
            let message =
                format!("{} is not running; the next prompt starts it again", self.agent());
            return RpcError::internal(message);
        }
        error
    }
}
