//! Files and terminals that the agent wants from its client: through the same hooks and questions as its tools.

use std::sync::Arc;

use futures::FutureExt;
use serde_json::Value;
use serde_json::json;
use tenon_host::Decided;
use tenon_host::Permission;
use tenon_host::Session;
use tenon_host::session::AgentTool;
use tenon_host::tool::ToolResult;
use tenon_protocol::permission::AgentRequest;
use tenon_protocol::permission::AskedBy;
use tenon_protocol::permission::PermissionRequest;

use super::Bridge;
use super::tool_watch::tell_later;
use crate::agent::Outer;
use crate::client_services::ServiceCall;
use crate::rpc::RpcError;
use crate::vocabulary;

/// Identifies the calls that are made up here, for the lack of an id in the request; as those of a session, so that a
/// client that is asked about one is told its end.
const ID_PREFIX: &str = "call-";

/// Why nothing more is done for an agent.
const UNWANTED: &str = "The turn was cancelled";

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
    /// there, or want the person asked; the rest is for the client to decide.
    pub(super) async fn forward(
        &self,
        outer: &Arc<dyn Outer>,
        method: &str,
        params: Value,
    ) -> Option<Result<Value, RpcError>> {
        let tool = forwarded_tool(method, &params);
        let (Some((name, args)), Some(session)) = (tool, self.session()) else {
            return outer.request(method, params).await;
        };
        let mut tool = made_up(name, args);
        let verdict = session.before_agent_tool(&mut tool).await;
        for context in verdict.contexts {
            tell_later(&session, context);
        }
        let refused = match &verdict.decided {
            Some(decided) => self.refused(&session, &tool, decided).await,
            None => None,
        };
        if let Some(why) = refused {
            session.after_agent_tool(&tool, ToolResult::denied(&*why)).await;
            return Some(Err(RpcError::new(RpcError::INTERNAL, why)));
        }
        let served = outer.request(method, params).await;
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
        if self.is_unwanted() {
            return Err(RpcError::new(RpcError::CANCELLED, UNWANTED));
        }
        let mut tool = made_up(name, args);
        let verdict = session.before_agent_tool(&mut tool).await;
        for context in verdict.contexts {
            tell_later(session, context);
        }
        let refused = match &verdict.decided {
            Some(decided) => self.refused(session, &tool, decided).await,
            None => self.asked(session, vocabulary::permission_request(&tool, None)).await,
        };
        // Hooks, and whoever was asked, take their time.
        let refused = refused.or_else(|| self.is_unwanted().then(|| UNWANTED.to_owned()));
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

    /// Why it may not be done, as an extension has decided; or the person, where an extension wants that.
    async fn refused(
        &self,
        session: &Session,
        tool: &AgentTool,
        decided: &Decided,
    ) -> Option<String> {
        let Decided { permission, by, reason } = decided;
        match permission {
            Permission::Allow => None,
            Permission::Deny => {
                let because = reason.as_ref().map(|reason| format!(": {reason}"));
                Some(format!("Denied by {by}{}", because.unwrap_or_default()))
            }
            Permission::Ask => {
                let mut request = vocabulary::permission_request(tool, None);
                // Without these it would be a question that the permission mode may answer.
                let (hook_message, extension_name) = (reason.clone(), by.clone());
                request.asked_by = Some(AskedBy { hook_message, extension_name });
                self.asked(session, request).await
            }
        }
    }

    /// Asks whoever may decide; why it may not be done. An answer that nobody wants any more is not waited for.
    async fn asked(&self, session: &Session, request: AgentRequest) -> Option<String> {
        let request = PermissionRequest::Agent(request);
        let decision = tokio::select! {
            biased;
            () = self.unwanted() => return Some(UNWANTED.to_owned()),
            decision = session.request_permission(&request) => decision,
        };
        let said = decision.feedback.as_deref().map(|said| format!(": {said}"));
        (!decision.is_approved()).then(|| format!("Not permitted{}", said.unwrap_or_default()))
    }

    /// Whether nobody wants any more what the agent is doing.
    fn is_unwanted(&self) -> bool {
        self.unwanted().now_or_never().is_some()
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
            // Variables decide what a command does as much as its words.
            let set = |variable: &Value| {
                let (name, value) = (variable["name"].as_str()?, variable["value"].as_str()?);
                Some(format!("{name}={} ", shell_words::quote(value)))
            };
            let variables = params["env"].as_array().into_iter().flatten().filter_map(set);
            let program = params["command"].as_str().unwrap_or_default();
            let args = params["args"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let quoted: Vec<_> = args.map(shell_words::quote).collect();
            let command = match &*quoted {
                [] => program.to_owned(),
                args => format!("{program} {}", args.join(" ")),
            };
            let command = variables.collect::<String>() + command.as_str();
            Some(("bash", json!({ "command": command })))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::tool_watch::stage::Stage;
    use super::*;
    use crate::agent::AgentSession;

    #[test]
    fn variables_are_part_of_a_command_that_the_client_runs() {
        let command = |params: Value| forwarded_tool("terminal/create", &params).unwrap().1;
        let env = json!([{ "name": "A", "value": "b c" }, { "name": "D", "value": "" }]);
        let params = json!({ "command": "make", "args": ["all", "it is"], "env": env });
        assert_eq!(command(params)["command"], "A='b c' D='' make all 'it is'");
        assert_eq!(command(json!({ "command": "ls | wc" }))["command"], "ls | wc");
    }

    #[tokio::test]
    async fn nothing_is_done_for_an_agent_that_does_not_stop() {
        let stage = Stage::new();
        let path = stage.root.join("file");
        let params = json!({ "sessionId": "s", "path": path, "content": "x" });
        stage.bridge.state().deaf = true;
        let refused = stage.bridge.request("fs/write_text_file", params.clone()).await.unwrap_err();
        assert_eq!(refused.code, RpcError::CANCELLED, "{refused}");
        assert!(!path.exists() && stage.events().is_empty(), "{:?}", stage.events());
        stage.bridge.state().deaf = false;
        assert_eq!(stage.bridge.request("fs/write_text_file", params).await, Ok(json!({})));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "x");
    }
}
