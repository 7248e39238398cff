//! Tool calls: through the hooks to the extension and back; and the hooks around the agent's own tools.

use serde::Serialize;
use serde_json::Value;
use serde_json::json;
use tenon_protocol::json::Json;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::LogLevel;
use tenon_protocol::permission::DecisionKind;
use tenon_protocol::permission::PermissionRequest;

use super::Session;
use super::manage_tools;
use super::outcome::ToolOutcome;
use super::pending::Kind;
use super::tool_messages::ExecutionStart;
use super::tool_messages::ToolPayload;
use super::tool_messages::ToolRequested;
use crate::events::EventData;
use crate::extensions::CallFailure;
use crate::extensions::Extension;
use crate::extensions::Peer;
use crate::extensions::Pinned;
use crate::extensions::Table;
use crate::extensions::View;
use crate::extensions::id_of;
use crate::front::Context;
use crate::front::Decision;
use crate::hooks::Runner;
use crate::hooks::tool_use::Caller;
use crate::hooks::tool_use::Decided;
use crate::hooks::tool_use::Permission;
use crate::hooks::tool_use::Post;
use crate::hooks::tool_use::PostFailure;
use crate::hooks::tool_use::Pre;
use crate::hooks::tool_use::PreMcp;
use crate::lifecycle::Stage;
use crate::tool::ResultType;
use crate::tool::SharedTool;
use crate::tool::ToolDeclaration;
use crate::tool::ToolResult;

/// The tool that searches other tools; its handler is told which there are.
const TOOL_SEARCH: &str = "tool_search_tool";

/// Whether the person still has to be asked about a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PermissionCheck {
    /// Yes, unless a hook or the tool says otherwise.
    #[default]
    Ask,
    /// No: whoever calls has asked, or is the person.
    Granted,
}

/// A call of an extension's tool.
#[derive(Debug, Clone)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub args: Json,
    /// Identifies the call; one is made up if there is none.
    pub id: Option<String>,
    /// The sub-agent that calls.
    pub agent_id: Option<String>,
    /// Whether the person still has to be asked.
    pub permission: PermissionCheck,
}

impl ToolCall {
    /// A call that needs no permission.
    pub fn new(name: impl Into<String>, args: impl Into<Json>) -> Self {
        Self {
            name: name.into(),
            args: args.into(),
            id: None,
            agent_id: None,
            permission: PermissionCheck::Granted,
        }
    }
}

/// A call could not be made.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// No extension has such a tool.
    #[error("there is no tool \"{name}\"")]
    UnknownTool {
        /// What was asked for.
        name: String,
        /// What there is.
        available: Vec<String>,
    },
}

/// A tool that can be called, and whose it is.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolListing {
    /// The tool as it was declared.
    #[serde(flatten)]
    pub tool: SharedTool,
    /// `scope:name` of its extension; none for the session's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension_id: Option<String>,
}

/// A call of one of the agent's own tools.
#[derive(Debug, Clone, Default)]
pub struct AgentTool {
    /// Identifies the call.
    pub id: String,
    /// The tool, by the name extensions know.
    pub name: String,
    /// Its arguments, in the shape extensions know.
    pub args: Value,
    /// What the agent itself calls the tool, and gives it; where that differs.
    pub native: Option<(String, Value)>,
    /// The sub-agent that calls.
    pub agent_id: Option<String>,
    /// Set if it is the tool of an MCP server.
    pub mcp: Option<McpTool>,
    /// Set if an extension wants the call not to be shown.
    pub suppress_output: bool,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, Default)]
pub struct McpTool {
    /// The server.
    pub server: String,
    /// The tool, without the server's prefix.
    pub tool: String,
    /// What travels beside the arguments; hooks may change it.
    pub meta: Option<Value>,
}

/// What extensions say about a call that is about to be made.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// The strictest decision, if there was one.
    pub decided: Option<Decided>,
    /// What they tell the agent.
    pub contexts: Vec<Context>,
}

impl Session {
    /// Every tool that can be called, by name.
    pub fn tools(&self) -> Vec<ToolListing> {
        let table = self.0.extensions.lock();
        let mut tools: Vec<_> = table
            .values()
            .filter(|extension| extension.is_loaded())
            .flat_map(|extension| {
                let info = extension.info();
                let id = &info.id;
                info.tools
                    .iter()
                    .map(|tool| ToolListing { tool: tool.clone(), extension_id: Some(id.clone()) })
            })
            .collect();
        drop(table);
        let is_free = |own: &&SharedTool| tools.iter().all(|it| it.tool.name != own.name);
        let own: Vec<_> = self.own_tools().filter(is_free).cloned().collect();
        tools.extend(own.into_iter().map(|tool| ToolListing { tool, extension_id: None }));
        tools.sort_by(|a, b| a.tool.name.cmp(&b.tool.name));
        tools
    }

    /// The names of all tools that can be called, sorted.
    pub(super) fn tool_names(&self) -> Vec<String> {
        self.tools().iter().map(|listing| listing.tool.name.clone()).collect()
    }

    /// Whether there is a tool of that name.
    pub fn has_tool(&self, name: &str) -> bool {
        self.look_at_tool(name, |_, _| ()).is_some()
    }

    /// `scope:name` of the extension that has a tool; none for the session's own.
    pub fn tool_owner(&self, name: &str) -> Option<String> {
        self.look_at_tool(name, |_, owner| owner.map(str::to_owned)).flatten()
    }

    /// Whether a tool declares a parameter of that name.
    pub fn tool_has_parameter(&self, tool: &str, parameter: &str) -> bool {
        let declares = |tool: &ToolDeclaration, _: Option<&str>| {
            let parameters = tool.parameters.as_ref();
            parameters.is_some_and(|it| it["properties"].get(parameter).is_some())
        };
        self.look_at_tool(tool, declares).unwrap_or_default()
    }

    /// Looks at a tool that can be called, and at the id of its extension. `look` runs under the extensions' lock.
    fn look_at_tool<T>(
        &self,
        name: &str,
        look: impl FnOnce(&ToolDeclaration, Option<&str>) -> T,
    ) -> Option<T> {
        {
            let table = self.0.extensions.lock();
            let loaded =
                table.values().filter(|extension| extension.is_loaded()).map(Extension::info);
            let mut all = loaded.flat_map(|it| it.tools.iter().map(move |tool| (tool, &it.id)));
            if let Some((tool, owner)) = all.find(|(tool, _)| tool.name == name) {
                return Some(look(tool, Some(owner)));
            }
        }
        self.own_tool(name).map(|tool| look(tool, None))
    }

    /// The tool of that name, and the load of an extension that has it; none for the session's own.
    fn tool<'a>(&self, view: &View<'a>, name: &str) -> Option<(SharedTool, Option<Pinned<'a>>)> {
        let found =
            view.find(|_, offers| offers.tools.iter().find(|tool| tool.name == name).cloned());
        if let Some((peer, tool)) = found {
            return Some((tool, Some(peer)));
        }
        Some((self.own_tool(name)?.clone(), None))
    }

    /// Calls a tool through the hooks. Dropping the future cancels the call: the handler's
    /// `invocation.signal` fires.
    pub async fn call_tool(&self, call: ToolCall) -> Result<ToolOutcome, CallError> {
        let aborts = *self.0.aborts.borrow();
        self.call_tool_since(call, aborts).await
    }

    /// The same for a turn that began after so many aborts.
    #[tracing::instrument(level = "debug", name = "call", skip_all, fields(tool = %call.name))]
    pub(super) async fn call_tool_since(
        &self,
        call: ToolCall,
        aborts: u64,
    ) -> Result<ToolOutcome, CallError> {
        self.until_back(&call.name).await;
        // Hooks and tool are those of one moment, whatever is loaded again meanwhile.
        let hooks = self.hooks();
        let Some((tool, owner)) = self.tool(&hooks.view, &call.name) else {
            return Err(CallError::UnknownTool { name: call.name, available: self.tool_names() });
        };
        let id = call.id.unwrap_or_else(|| format!("call-{}", crate::ids::unique()));
        let caller = Caller {
            tool_call_id: id,
            tool_name: call.name,
            agent_id: call.agent_id,
            native: None,
        };
        let mut unfinished = Unfinished { session: self, caller: &caller, armed: true };
        let outcome = tokio::select! {
            biased;
            outcome = self.run_tool(&hooks, &caller, &tool, owner.as_deref(), call.args, call.permission) => outcome,
            () = self.aborted_after(aborts) => ToolOutcome::aborted(),
        };
        unfinished.armed = false;
        if let Some(Value::String(text)) = outcome.result.rest.get("sessionLog") {
            self.emit("session.info", json!({ "infoType": "tool", "message": text }));
        }
        let completed = outcome.completed(&caller.tool_call_id, &caller.tool_name);
        self.emit("tool.execution_complete", completed);
        Ok(outcome)
    }

    async fn run_tool(
        &self,
        hooks: &Runner<'_>,
        caller: &Caller,
        tool: &ToolDeclaration,
        owner: Option<&Peer>,
        args: Json,
        permission: PermissionCheck,
    ) -> ToolOutcome {
        self.execution_starts(caller, &args, None);
        let pre = hooks.run(Pre::new(caller.clone(), args)).await;
        let (before, args) = (pre.contexts, pre.args);
        let mut suppress_output = pre.suppress_output;
        let permitted = self.may_call(caller, tool, &args, pre.decided, permission);
        if let Err(result) = permitted.await {
            let ends_turn = result.result_type == ResultType::Rejected;
            return ToolOutcome { result, before, after: Vec::new(), ends_turn, suppress_output };
        }
        let result = self.execute(caller, owner, &args).await;
        let Digest { mut result, contexts: after, suppress_output: suppressed } =
            digest(hooks, caller, &args, result).await;
        suppress_output |= suppressed;
        let ends_turn = match result.result_type {
            ResultType::Rejected => true,
            ResultType::Success => tool.flag("isTerminal"),
            _ => false,
        };
        self.spill(&caller.tool_call_id, &mut result).await;
        ToolOutcome { result, before, after, ends_turn, suppress_output }
    }

    /// Whether the call may be made, after the hooks' decision and the person's, where one is needed.
    async fn may_call(
        &self,
        caller: &Caller,
        tool: &ToolDeclaration,
        args: &Json,
        decided: Option<Decided>,
        permission: PermissionCheck,
    ) -> Result<(), ToolResult> {
        // Switching extensions on and off is managing what guards the agent: hooks may forbid it, but only
        // the person permits it.
        let forbidden = decided.as_ref().is_some_and(|it| it.permission == Permission::Deny);
        if permission == PermissionCheck::Ask
            && !forbidden
            && let Some(operation) = manage_tools::switches(&caller.tool_name, args.value())
        {
            let request = PermissionRequest::ExtensionManagement {
                tool_call_id: caller.tool_call_id.clone(),
                operation,
                extension_name: args.value()["name"].as_str().map(str::to_owned),
            };
            let decision = self.ask_person_for_permission(&request).await;
            return refusal(decision, None, None).map_or(Ok(()), Err);
        }
        let Some(Decided { permission: decision, by, reason }) = decided else {
            if permission == PermissionCheck::Granted || tool.flag("skipPermission") {
                return Ok(());
            }
            let request = PermissionRequest::CustomTool {
                tool_call_id: caller.tool_call_id.clone(),
                tool_name: caller.tool_name.clone(),
                tool_description: tool.description.clone(),
                args: args.clone(),
            };
            return self.person_permits(&request, None).await;
        };
        let because = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        match decision {
            Permission::Allow => Ok(()),
            Permission::Deny => Err(ToolResult::denied(format!("Denied by {by}{because}"))),
            Permission::Ask => {
                let request = PermissionRequest::Hook {
                    tool_call_id: caller.tool_call_id.clone(),
                    tool_name: caller.tool_name.clone(),
                    tool_args: args.clone(),
                    hook_message: reason,
                    extension_name: by.clone(),
                };
                self.person_permits(&request, Some((&by, &because))).await
            }
        }
    }

    /// Asks for permission; `hook` is the extension that wants it asked for, and its reason.
    async fn person_permits(
        &self,
        request: &PermissionRequest,
        hook: Option<(&str, &str)>,
    ) -> Result<(), ToolResult> {
        let (decision, by) = self.permission(request).await;
        refusal(decision, by.as_deref(), hook).map_or(Ok(()), Err)
    }

    /// Has the tool's owner run it.
    async fn execute(&self, caller: &Caller, owner: Option<&Peer>, args: &Json) -> ToolResult {
        let name = &caller.tool_name;
        let Some(owner) = owner else { return self.call_own_tool(name, args.value()).await };
        // Its load may have ended since it was looked up, for instance during a long question to the person. The tool is
        // then the next one's.
        let is_gone = {
            let table = self.0.extensions.lock();
            table.load(owner).is_none_or(|load| load.stage() == Stage::Stopping)
        };
        let newer = if is_gone {
            self.tool(&self.0.extensions.view(), name).and_then(|(_, newer)| newer)
        } else {
            None
        };
        let owner = newer.as_deref().unwrap_or(owner);
        let (schema, deadline) = {
            let table = self.0.extensions.lock();
            let owner = table.get(&owner.key);
            let deadline = owner.and_then(|owner| owner.info().limits.tool_deadline());
            (table.schema(name), deadline)
        };
        let mismatches = schema.map(|schema| schema.problems(args.value()));
        for mismatch in mismatches.into_iter().flatten() {
            let text =
                format!("{name} was called with arguments that do not fit its schema: {mismatch}");
            self.0.extensions.note(&owner.key, LogLevel::Warning, text);
        }
        let over = "external_tool.completed";
        let pending = &self.0.pending;
        let mut pending = pending.open_of(Some(&owner.key), Kind::Tool, &self.0.bus, over);
        let request = pending.id.clone();
        let requested = ToolRequested {
            request_id: &request,
            session_id: self.id(),
            tool_call_id: &caller.tool_call_id,
            tool_name: name,
            arguments: args,
            working_directory: self.cwd().to_string_lossy(),
        };
        self.emit("external_tool.requested", EventData::written(&requested));
        let payload = ToolPayload {
            name,
            args,
            tool_call_id: &caller.tool_call_id,
            request_id: &request,
            session_id: self.id(),
            agent_id: caller.agent_id.as_deref(),
            available_tools: (name == TOOL_SEARCH).then(|| self.tools_metadata()),
        };
        // Plain data always has a JSON text.
        let payload = serde_json::to_string(&payload).unwrap_or_default();
        let called = async {
            let reply = self.call(owner, CallKind::Tool, deadline, payload).await;
            match reply {
                Ok(value) => ToolResult::from_reply(value),
                Err(CallFailure::Ended { id, reason }) => {
                    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                    ToolResult::failure(format!("{id} ended before {name} returned{why}"))
                }
                Err(CallFailure::Late(deadline)) => ToolResult::failure(format!(
                    "{name} of {} did not return within {deadline:?} (limit tool-deadline-ms)",
                    id_of(&owner.key)
                )),
                Err(failure) => ToolResult::failure(failure.to_string()),
            }
        };
        let result = tokio::select! {
            result = called => result,
            answer = pending.answered() => ToolResult::from_pending(answer),
        };
        pending.complete(json!({ "requestId": request }));
        result
    }

    /// Waits for a tool whose extension is being started again, for a while.
    async fn until_back(&self, tool: &str) {
        let is_away = |table: &Table| {
            let has_it = |it: &Extension| it.info().tools.iter().any(|has| has.name == tool);
            let extensions = || table.values();
            extensions().any(|it| it.brings_back(tool)) && !extensions().any(has_it)
        };
        if is_away(&self.0.extensions.lock()) {
            let back = self.0.extensions.until(|table| !is_away(table));
            let patience = self.0.options.timing.return_patience;
            tokio::select! {
                _ = tokio::time::timeout(patience, back) => {}
                () = self.ending() => {}
            }
        }
    }

    /// The agent is about to use a tool of its own: what extensions say. The arguments, and what travels
    /// beside them, may be changed.
    pub async fn before_agent_tool(&self, tool: &mut AgentTool) -> Verdict {
        let caller = tool.caller();
        let args = Json::from(tool.args.take());
        self.execution_starts(&caller, &args, tool.mcp.as_ref());
        let pre = self.hooks().run(Pre::new(caller, args)).await;
        tool.args = pre.args.value().clone();
        tool.suppress_output |= pre.suppress_output;
        let mut decided = pre.decided;
        let denied = decided.as_ref().is_some_and(|decided| decided.permission == Permission::Deny);
        if let Some(mcp) = &mut tool.mcp
            && !denied
        {
            let chain = PreMcp {
                tool_call_id: tool.id.clone(),
                agent_id: tool.agent_id.clone(),
                server: mcp.server.clone(),
                tool: mcp.tool.clone(),
                args: pre.args,
                meta: mcp.meta.take(),
                denied: None,
            };
            let chain = self.hooks().run(chain).await;
            mcp.meta = chain.meta;
            decided = chain.denied.or(decided);
        }
        Verdict { decided, contexts: pre.contexts }
    }

    /// The agent has used a tool of its own, or was not allowed to: what extensions make of it.
    pub async fn after_agent_tool(&self, tool: &AgentTool, result: ToolResult) -> ToolOutcome {
        let caller = tool.caller();
        let Digest { result, contexts: after, suppress_output } =
            digest(&self.hooks(), &caller, &Json::from(&tool.args), result).await;
        let suppress_output = suppress_output || tool.suppress_output;
        let ends_turn = result.result_type == ResultType::Rejected;
        let outcome = ToolOutcome { result, before: Vec::new(), after, ends_turn, suppress_output };
        self.emit("tool.execution_complete", outcome.completed(&tool.id, &tool.name));
        outcome
    }

    fn execution_starts(&self, caller: &Caller, args: &Json, mcp: Option<&McpTool>) {
        let native = caller.native.as_ref();
        let start = ExecutionStart {
            tool_call_id: &caller.tool_call_id,
            tool_name: &caller.tool_name,
            arguments: args,
            mcp_server_name: mcp.map(|mcp| mcp.server.as_str()),
            mcp_tool_name: mcp.map(|mcp| mcp.tool.as_str()),
            native_tool_name: native.map(|(name, _)| name.as_str()),
            native_arguments: native.map(|(_, args)| args),
        };
        self.emit("tool.execution_start", EventData::written(&start));
    }

    /// The tools as `rpc.tools.getCurrentMetadata` describes them.
    pub(super) fn tools_metadata(&self) -> Value {
        let describe = |ToolListing { tool, .. }: ToolListing| {
            let mut described = json!({ "name": tool.name, "description": tool.description });
            if let Some(parameters) = &tool.parameters {
                described["input_schema"] = parameters.clone();
            }
            if tool.rest.get("defer").is_some_and(|defer| defer == "auto") {
                described["deferLoading"] = true.into();
            }
            if let Some(metadata) = tool.rest.get("metadata") {
                described["metadata"] = metadata.clone();
            }
            described
        };
        self.tools().into_iter().map(describe).collect()
    }
}

impl AgentTool {
    fn caller(&self) -> Caller {
        Caller {
            tool_call_id: self.id.clone(),
            tool_name: self.name.clone(),
            agent_id: self.agent_id.clone(),
            native: self.native.clone(),
        }
    }
}

/// Runs the hooks after a call.
async fn digest(hooks: &Runner<'_>, caller: &Caller, args: &Json, result: ToolResult) -> Digest {
    match result.result_type {
        ResultType::Success => {
            let chain = Post {
                caller: caller.clone(),
                args: args.clone(),
                result,
                contexts: Vec::new(),
                suppress_output: false,
            };
            let Post { result, contexts, suppress_output, .. } = hooks.run(chain).await;
            Digest { result, contexts, suppress_output }
        }
        ResultType::Failure => {
            let error = result.error.as_ref().unwrap_or(&result.text_result_for_llm).clone();
            let chain = PostFailure {
                caller: caller.clone(),
                args: args.clone(),
                error,
                contexts: Vec::new(),
            };
            let contexts = hooks.run(chain).await.contexts;
            Digest { result, contexts, suppress_output: false }
        }
        _ => Digest { result, contexts: Vec::new(), suppress_output: false },
    }
}

/// What is said to the agent when a decision does not let a call be made; `by` is the extension that decided,
/// `hook` the one that wanted it decided, with its reason.
fn refusal(decision: Decision, by: Option<&str>, hook: Option<(&str, &str)>) -> Option<ToolResult> {
    if decision.is_approved() {
        return None;
    }
    let nobody = decision.kind == DecisionKind::DeniedWithNobodyToAsk;
    let who = by.unwrap_or("the person");
    let said = decision.feedback.map(|said| format!(": {said}")).unwrap_or_default();
    Some(ToolResult::denied(match hook {
        None if nobody => "Denied: there is nobody to ask for permission".to_owned(),
        None => format!("Denied by {who}{said}"),
        Some((by, because)) if nobody => {
            format!(
                "Denied: {by} wants the person to be asked, and there is nobody to ask{because}"
            )
        }
        Some((by, because)) => {
            format!("Denied by {who}{said} (asked because of {by}{because})")
        }
    }))
}

/// A result after its hooks.
struct Digest {
    result: ToolResult,
    contexts: Vec<Context>,
    suppress_output: bool,
}

/// Says that a call is over when whoever called does not wait for its end.
struct Unfinished<'a> {
    session: &'a Session,
    caller: &'a Caller,
    armed: bool,
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.armed {
            let data = json!({
                "toolCallId": self.caller.tool_call_id,
                "toolName": self.caller.tool_name,
                "success": false,
                "error": { "message": "the call was cancelled", "code": "cancelled" },
            });
            self.session.emit("tool.execution_complete", data);
        }
    }
}
