//! Files and terminals that the agent wants from its client: through the same hooks and questions as its tools.

use std::sync::Arc;

use serde_json::Value;
use serde_json::json;
use tenon_host::Decided;
use tenon_host::Permission;
use tenon_host::Session;
use tenon_host::session::AgentTool;
use tenon_host::tool::ToolResult;

use super::Bridge;
use super::tool_watch::tell_later;
use crate::agent::Outer;
use crate::client_services::ServiceCall;
use crate::rpc::RpcError;
use crate::vocabulary;

/// Identifies the calls that are made up here, for the lack of an id in the request.
const ID_PREFIX: &str = "client-";

impl Bridge {
    /// Serves a request for a file or a terminal; `None` if it is not one, or not ours to serve.
    pub(super) async fn serve_client_request(
        &self,
        method: &str,
        params: &Value,
    ) -> Option<Result<Value, RpcError>> {
        let call = match self.services.describe(method, params)? {
            Ok(call) => call,
            Err(error) => return Some(Err(error)),
        };
        let Some(session) = self.session() else { return Some(Err(RpcError::closed())) };
        Some(match call.tool() {
            Some((name, args)) => self.serve_permitted(&session, call, name, args).await,
            None => self.services.serve(call).await,
        })
    }

    /// Passes a request on to the client in front. Extensions may forbid what is done with files and terminals
    /// there; the rest is for the client to decide.
    pub(super) async fn forward(
        &self,
        outer: &Arc<dyn Outer>,
        method: &str,
        params: Value,
    ) -> Option<Result<Value, RpcError>> {
        let tool = forwarded_tool(method, &params);
        let (Some((name, args)), Some(session)) = (tool, self.session()) else {
            return outer.request(method, self.with_our_id(params)).await;
        };
        let mut tool = made_up(name, args);
        let verdict = session.before_agent_tool(&mut tool).await;
        for context in verdict.contexts {
            tell_later(&session, context);
        }
        if let Some(Decided { permission: Permission::Deny, by, reason }) = verdict.decided {
            let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            let why = format!("Denied by {by}{because}");
            session.after_agent_tool(&tool, ToolResult::denied(&*why)).await;
            return Some(Err(RpcError::new(RpcError::INTERNAL, why)));
        }
        let served = outer.request(method, self.with_our_id(params)).await;
        let result = match &served {
            Some(Ok(answer)) => ToolResult::success(answer["content"].as_str().unwrap_or("done")),
            Some(Err(error)) => ToolResult::failure(error.to_string()),
            None => ToolResult::failure("nobody serves it"),
        };
        for context in session.after_agent_tool(&tool, result).await.after {
            tell_later(&session, context);
        }
        served
    }

    async fn serve_permitted(
        &self,
        session: &Session,
        call: ServiceCall,
        name: &str,
        args: Value,
    ) -> Result<Value, RpcError> {
        let mut tool = made_up(name, args);
        let verdict = session.before_agent_tool(&mut tool).await;
        for context in verdict.contexts {
            tell_later(session, context);
        }
        let refused = match verdict.decided {
            Some(Decided { permission: Permission::Allow, .. }) => None,
            Some(Decided { permission: Permission::Deny, by, reason }) => {
                let because = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                Some(format!("Denied by {by}{because}"))
            }
            _ => {
                let request = vocabulary::permission_request(&tool, None);
                let decision = session.request_permission(&request).await;
                let said = decision.feedback.as_deref().map(|said| format!(": {said}"));
                let said = said.unwrap_or_default();
                (!decision.is_approved()).then(|| format!("Not permitted{said}"))
            }
        };
        if let Some(why) = refused {
            session.after_agent_tool(&tool, ToolResult::denied(&*why)).await;
            return Err(RpcError::new(RpcError::INTERNAL, why));
        }
        let served = self.services.serve(call).await;
        let result = match &served {
            Ok(answer) => ToolResult::success(answer["content"].as_str().unwrap_or("done")),
            Err(error) => ToolResult::failure(error.to_string()),
        };
        for context in session.after_agent_tool(&tool, result).await.after {
            tell_later(session, context);
        }
        served
    }
}

/// A call without an id of the agent's.
fn made_up(name: &str, args: Value) -> AgentTool {
    let id = format!("{ID_PREFIX}{}", uuid::Uuid::new_v4());
    AgentTool { id, name: name.to_owned(), args, ..AgentTool::default() }
}

/// What a request for a file or a terminal of the client is, in the words that extensions know.
fn forwarded_tool(method: &str, params: &Value) -> Option<(&'static str, Value)> {
    match method {
        "fs/read_text_file" => Some(("view", json!({ "path": params["path"] }))),
        "fs/write_text_file" => {
            Some(("create", json!({ "path": params["path"], "file_text": params["content"] })))
        }
        "terminal/create" => {
            let program = params["command"].as_str().unwrap_or_default();
            let args = params["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let quoted: Vec<_> = args.map(shell_words::quote).collect();
            let command = match &*quoted {
                [] => program.to_owned(),
                args => format!("{program} {}", args.join(" ")),
            };
            Some(("bash", json!({ "command": command })))
        }
        _ => None,
    }
}
