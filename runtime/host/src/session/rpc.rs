//! `session.rpc`: the low-level methods an extension can call, by the names of the public contract.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::SystemTime;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::RequestId;

use super::Session;
use super::canvas::OpenCanvasRequest;
use super::message::Delivery;
use super::message::Message;
use super::pending::Kind;
use super::tool_call::CallError;
use super::tool_call::PermissionCheck;
use super::tool_call::ToolCall;
use crate::approvals::Approvals;
use crate::approvals::identity;
use crate::extensions::Key;
use crate::extensions::Peer;
use crate::extensions::id_of;
use crate::front::Context;
use crate::front::Elicitation;

/// Every method that is served.
pub const SERVED: &[&str] = &[
    "abort",
    "agent.getCurrent",
    "agent.list",
    "canvas.action.invoke",
    "canvas.close",
    "canvas.list",
    "canvas.listOpen",
    "canvas.open",
    "commands.execute",
    "commands.handlePendingCommand",
    "commands.invoke",
    "commands.list",
    "eventLog.read",
    "extensions.list",
    "extensions.reload",
    "interruptMainTurn",
    "log",
    "mcp.list",
    "metadata.contextInfo",
    "metadata.isProcessing",
    "metadata.snapshot",
    "mode.get",
    "mode.set",
    "model.getCurrent",
    "model.list",
    "model.setReasoningEffort",
    "model.switchTo",
    "name.get",
    "name.set",
    "permissions.handlePendingPermissionRequest",
    "permissions.paths.list",
    "plan.delete",
    "plan.read",
    "plan.readSqlTodos",
    "plan.update",
    "queue.clear",
    "queue.pendingItems",
    "send",
    "sendSystemNotification",
    "skills.list",
    "tasks.list",
    "tools.execute",
    "tools.getCurrentMetadata",
    "tools.handlePendingToolCall",
    "ui.elicitation",
    "ui.handlePendingAutoModeSwitch",
    "ui.handlePendingElicitation",
    "ui.handlePendingExitPlanMode",
    "ui.handlePendingUserInput",
    "usage.getMetrics",
    "workspaces.createFile",
    "workspaces.getWorkspace",
    "workspaces.listFiles",
    "workspaces.readFile",
];

/// The modes of a session.
const MODES: [&str; 3] = ["interactive", "plan", "autopilot"];

/// The most tools and commands that extensions have running at once through `rpc`. A hook that calls a tool
/// is asked about that call too, and one that does not look out calls on without end.
pub const MAX_NESTED_CALLS: usize = 64;

/// The most events that `eventLog.read` gives at once.
const MAX_READ_EVENTS: usize = 1_000;

impl Session {
    /// Serves a method: at once where nothing has to be waited for, so that an extension's requests keep
    /// their order; else in a task of its own.
    pub(super) fn rpc(&self, peer: &Peer, request: RequestId, path: &str, params: Value) {
        if let Some(result) = self.rpc_now(&peer.key, path, &params) {
            return self.answer(peer, request, result);
        }
        let (session, peer, path) = (self.clone(), peer.clone(), path.to_owned());
        self.0.runtime.spawn(async move {
            // A load that reloads everything while it is itself on its way would do so for ever.
            if path == "extensions.reload" && session.is_on_its_way(&peer) {
                let refusal = session.refuse_reload(&peer);
                return session.answer(&peer, request, Err(refusal));
            }
            let result = tokio::select! {
                result = session.rpc_later(&peer.key, &path, params) => result,
                () = session.gone(&peer) => return,
            };
            session.answer(&peer, request, result);
        });
    }

    /// Methods that are served at once; `None` for all others.
    fn rpc_now(&self, key: &Key, path: &str, params: &Value) -> Option<Result<Value, String>> {
        let id = id_of(key);
        let needed = |field: &str| {
            params[field]
                .as_str()
                .ok_or_else(|| format!("session.rpc.{path}: `{field}` is missing"))
        };
        let answered = |kind: Kind, answer: &Value| {
            let request = needed("requestId")?;
            self.may_answer(key, request)?;
            Ok(json!({ "success": self.0.pending.answer(request, kind, answer.clone()) }))
        };
        Some(match path {
            "send" => self.rpc_send(&id, params),
            "abort" => {
                self.abort(params["reason"].as_str().unwrap_or("user_initiated"));
                Ok(json!({ "success": true }))
            }
            "interruptMainTurn" => {
                let running = self.0.queue.is_busy();
                self.abort("user_initiated");
                Ok(json!({ "interrupted": running }))
            }
            "log" => self.rpc_log(key, &id, params),
            "sendSystemNotification" => needed("content").and_then(|content| {
                let kind = params.get("kind").cloned().unwrap_or(json!({ "type": "extension" }));
                self.add_context(Context { extension: id.clone(), text: content.to_owned() })?;
                let data = json!({ "content": content, "kind": kind, "extensionId": id });
                Ok(json!({ "eventId": self.emit("system.notification", data) }))
            }),
            "name.get" => Ok(json!({ "name": self.facts().name })),
            "name.set" => needed("name").map(|name| {
                self.title_changed(name);
                Value::Null
            }),
            "mode.get" => Ok(self.facts().mode.clone().into()),
            "model.getCurrent" => {
                let facts = self.facts();
                let mut current = json!({});
                if let Some(model) = &facts.model {
                    current["modelId"] = model.as_str().into();
                }
                if let Some(effort) = &facts.reasoning_effort {
                    current["reasoningEffort"] = effort.as_str().into();
                }
                Ok(current)
            }
            "model.list" => {
                let agent = self.0.options.agent.as_ref();
                let models = agent.map(|agent| agent.models()).unwrap_or_default();
                Ok(json!({ "list": models, "modelPriceCategories": [], "quotaSnapshots": {} }))
            }
            "plan.update" => needed("content").and_then(|content| self.write_plan(content)),
            "plan.delete" => self.delete_plan(),
            "workspaces.getWorkspace" => Ok(json!({
                "workspace": { "id": self.id(), "cwd": self.cwd(), "name": self.facts().name },
                "path": self.folder(),
            })),
            "workspaces.createFile" => needed("path")
                .and_then(|path| Ok((path, needed("content")?)))
                .and_then(|(path, content)| self.write_file(path, content)),
            "tools.getCurrentMetadata" => Ok(json!({ "tools": self.tools_metadata() })),
            "tools.handlePendingToolCall" => answered(Kind::Tool, params),
            "extensions.list" => Ok(self.rpc_extensions()),
            "commands.list" => Ok(self.rpc_commands()),
            "commands.handlePendingCommand" => answered(Kind::Command, params),
            "permissions.handlePendingPermissionRequest" => {
                answered(Kind::Permission, &params["result"])
            }
            "ui.handlePendingUserInput" => answered(Kind::UserInput, &params["response"]),
            "ui.handlePendingElicitation" => answered(Kind::Elicitation, &params["result"]),
            "ui.handlePendingExitPlanMode" => answered(Kind::ExitPlanMode, &params["response"]),
            "ui.handlePendingAutoModeSwitch" => answered(Kind::AutoModeSwitch, &params["response"]),
            "canvas.list" => Ok(json!({ "canvases": self.canvases() })),
            "canvas.listOpen" => Ok(json!({ "openCanvases": self.open_canvases() })),
            "metadata.isProcessing" => Ok(json!({ "processing": self.0.queue.is_busy() })),
            "metadata.snapshot" => Ok(self.rpc_snapshot()),
            "queue.pendingItems" => {
                Ok(json!({ "items": self.0.queue.items(), "steeringMessages": [] }))
            }
            "queue.clear" => {
                if self.0.queue.clear() > 0 {
                    self.emit_ephemeral("pending_messages.modified", json!({}));
                }
                Ok(Value::Null)
            }
            "usage.getMetrics" => Ok(self.rpc_usage()),
            // What this host does not have there is none of; extensions that look are told so.
            "tasks.list" => Ok(json!({ "tasks": [] })),
            "agent.list" => Ok(json!({ "agents": [] })),
            "agent.getCurrent" => Ok(json!({ "agent": null })),
            "skills.list" => Ok(json!({ "skills": [] })),
            "mcp.list" => Ok(json!({ "servers": [] })),
            "plan.readSqlTodos" => Ok(json!({ "rows": [] })),
            "metadata.contextInfo" => Ok(json!({ "contextInfo": null })),
            "permissions.paths.list" => {
                Ok(json!({ "directories": [self.cwd()], "primary": self.cwd() }))
            }
            _ => return None,
        })
    }

    /// Methods that have to wait for something.
    async fn rpc_later(&self, key: &Key, path: &str, params: Value) -> Result<Value, String> {
        match path {
            "mode.set" => self.rpc_set_mode(&params).await,
            "model.switchTo" => self.rpc_set_model(params).await,
            "model.setReasoningEffort" => self.rpc_set_effort(&params).await,
            "ui.elicitation" => {
                let mut form: Elicitation = read(path, params)?;
                let id = id_of(key);
                form.elicitation_source = Some(id.clone());
                match self.elicit(&form, Some(&id)).await {
                    Some(answer) => to_json(&answer),
                    None => Err("there is nobody to ask: the session has no front that shows \
                                 dialogs"
                        .to_owned()),
                }
            }
            "canvas.open" => {
                let request: OpenCanvasRequest = read(path, params)?;
                to_json(&self.open_canvas(request).await.map_err(|fault| fault.to_string())?)
            }
            "canvas.close" => {
                let instance = params["instanceId"].as_str().unwrap_or_default();
                self.close_canvas(instance).await.map_err(|fault| fault.to_string())?;
                Ok(Value::Null)
            }
            "canvas.action.invoke" => {
                let text = |field: &str| params[field].as_str().unwrap_or_default();
                let input = params.get("input").cloned();
                self.invoke_canvas_action(text("instanceId"), text("actionName"), input)
                    .await
                    .map_err(|fault| fault.to_string())
            }
            "commands.invoke" | "commands.execute" => {
                let _nested = self.nested()?;
                let text = |field: &str| params[field].as_str();
                let name = text("name").or(text("commandName")).unwrap_or_default();
                let args = text("input").or(text("args")).unwrap_or_default();
                match (self.run_command(name, args).await, path) {
                    (Ok(()), "commands.invoke") => Ok(json!({ "kind": "completed" })),
                    (Ok(()), _) => Ok(json!({})),
                    (Err(error), "commands.invoke") => Err(error.to_string()),
                    (Err(error), _) => Ok(json!({ "error": error.to_string() })),
                }
            }
            "tools.execute" => {
                let _nested = self.nested()?;
                let name = params["toolName"].as_str().or(params["name"].as_str());
                let call = ToolCall {
                    permission: PermissionCheck::Ask,
                    ..ToolCall::new(name.unwrap_or_default(), params["arguments"].clone())
                };
                let outcome = self.call_tool(call).await.map_err(|error| {
                    let CallError::UnknownTool { available, .. } = &error;
                    format!("{error}; there are: {}", available.join(", "))
                })?;
                to_json(&outcome.result)
            }
            "plan.read" => self.read_on_disk(Self::read_plan).await,
            "workspaces.listFiles" => self.read_on_disk(|session| Ok(session.list_files())).await,
            "workspaces.readFile" => {
                let file = params["path"].as_str().map(str::to_owned);
                let file = file.ok_or_else(|| format!("session.rpc.{path}: `path` is missing"))?;
                self.read_on_disk(move |session| session.read_file(&file)).await
            }
            "eventLog.read" => {
                self.read_on_disk(move |session| session.rpc_read_events(&params)).await
            }
            "extensions.reload" => {
                self.reload().await;
                Ok(Value::Null)
            }
            _ => Err(format!("session.rpc.{path} is not served by this host")),
        }
    }

    /// Reads something from disk for an extension, while no task waits for the disk.
    async fn read_on_disk(
        &self,
        read: impl FnOnce(&Self) -> Result<Value, String> + Send + 'static,
    ) -> Result<Value, String> {
        let read = self.on_disk(read).await;
        read.unwrap_or_else(|| Err("the session could not read it".to_owned()))
    }

    /// Whether an extension may answer a request in the place of the handler it is for. One that may do less than the
    /// handler's extension would speak with more weight than it has.
    fn may_answer(&self, key: &Key, request: &str) -> Result<(), String> {
        let Some(owner) = self.0.pending.owner(request).filter(|owner| owner != key) else {
            return Ok(());
        };
        let config = |key: &Key| self.0.config.of(&id_of(key), &key.1);
        // Secrets that the person gave the owner belong to that one alone.
        let has_secrets = Approvals::of(&self.0.options.home).has_any(&identity(&owner));
        if !has_secrets && config(&owner).is_within(&config(key)) {
            return Ok(());
        }
        let (id, owner) = (id_of(key), id_of(&owner));
        Err(format!("{id} cannot answer a request to {owner}, whose grant is larger"))
    }

    /// Counts a call that an extension makes, as long as it runs.
    fn nested(&self) -> Result<Nested<'_>, String> {
        let nested = Nested(&self.0.nested);
        if nested.0.fetch_add(1, Ordering::Relaxed) >= MAX_NESTED_CALLS {
            return Err(format!(
                "extensions have {MAX_NESTED_CALLS} calls running already; a hook must not call the \
                 tool that triggered it"
            ));
        }
        Ok(nested)
    }

    fn rpc_send(&self, id: &str, params: &Value) -> Result<Value, String> {
        let text = |field: &str| params[field].as_str().map(str::to_owned);
        let prompt = text("prompt").ok_or("session.send: `prompt` must be a string")?;
        let delivery = match params["mode"].as_str() {
            None | Some("enqueue") => Delivery::Enqueue,
            Some("immediate") => Delivery::Immediate,
            Some(other) => {
                return Err(format!(
                    "session.send: mode must be \"enqueue\" or \"immediate\", not {other:?}"
                ));
            }
        };
        let attachments = match &params["attachments"] {
            Value::Null => Arc::default(),
            Value::Array(attachments) => attachments.as_slice().into(),
            _ => return Err("session.send: `attachments` must be an array".to_owned()),
        };
        let message = Message {
            prompt,
            display_prompt: text("displayPrompt"),
            attachments,
            delivery,
            source: Some(text("source").unwrap_or_else(|| format!("agent-{id}"))),
            agent_mode: text("agentMode"),
            native: None,
        };
        let id = self.send(message).map_err(|error| error.to_string())?;
        Ok(json!({ "messageId": id }))
    }

    fn rpc_log(&self, key: &Key, id: &str, params: &Value) -> Result<Value, String> {
        let text = params["message"].as_str().ok_or("session.log: `message` must be a string")?;
        let (level, event, field) = match params["level"].as_str() {
            None | Some("info") => (LogLevel::Info, "session.info", "infoType"),
            Some("warning") => (LogLevel::Warning, "session.warning", "warningType"),
            Some("error") => (LogLevel::Error, "session.error", "errorType"),
            Some(other) => return Err(format!("session.log: there is no level {other:?}")),
        };
        self.0.extensions.note(key, level, text);
        let mut data = json!({ field: "notification", "message": text, "extensionId": id });
        for more in ["url", "tip"] {
            match params.get(more) {
                None | Some(Value::Null) => {}
                Some(Value::String(text)) => data[more] = text.as_str().into(),
                Some(_) => return Err(format!("session.log: `{more}` must be a string")),
            }
        }
        let ephemeral = params["ephemeral"] == true;
        let event_id =
            if ephemeral { self.emit_ephemeral(event, data) } else { self.emit(event, data) };
        Ok(json!({ "eventId": event_id }))
    }

    async fn rpc_set_mode(&self, params: &Value) -> Result<Value, String> {
        let mode = params["mode"].as_str().unwrap_or_default();
        if !MODES.contains(&mode) {
            return Err(format!("there is no mode {mode:?}; there are: {}", MODES.join(", ")));
        }
        if let Some(agent) = &self.0.options.agent {
            agent.set_mode(mode).await?;
        }
        self.mode_changed(mode);
        Ok(json!({ "status": "applied", "modelChanged": false }))
    }

    /// The agent works in another mode now.
    pub fn mode_changed(&self, mode: &str) {
        let previous = std::mem::replace(&mut self.facts().mode, mode.to_owned());
        if previous != mode {
            let data = json!({ "previousMode": previous, "newMode": mode });
            self.emit("session.mode_changed", data);
        }
    }

    /// The agent uses another model now.
    pub fn model_changed(&self, model: &str, reasoning_effort: Option<&str>) {
        let previous = self.facts().model.replace(model.to_owned());
        if previous.as_deref() == Some(model) && reasoning_effort.is_none() {
            return;
        }
        let mut data = json!({ "newModel": model });
        if let Some(effort) = reasoning_effort {
            self.facts().reasoning_effort = Some(effort.to_owned());
            data["reasoningEffort"] = effort.into();
        }
        if let Some(previous) = previous {
            data["previousModel"] = previous.into();
        }
        self.emit("session.model_change", data);
    }

    /// The session has another name now.
    pub fn title_changed(&self, title: &str) {
        self.facts().name = Some(title.to_owned());
        self.emit_ephemeral("session.title_changed", json!({ "title": title }));
    }

    async fn rpc_set_model(&self, params: Value) -> Result<Value, String> {
        let model = params["modelId"].as_str();
        let model = model.ok_or("session.rpc.model.switchTo: `modelId` is missing")?;
        let agent = self.0.options.agent.as_ref().ok_or("the session has no agent")?;
        agent.set_model(model, &params).await?;
        self.model_changed(model, params["reasoningEffort"].as_str());
        Ok(json!({ "modelId": model }))
    }

    async fn rpc_set_effort(&self, params: &Value) -> Result<Value, String> {
        let effort = params["reasoningEffort"]
            .as_str()
            .ok_or("session.rpc.model.setReasoningEffort: `reasoningEffort` is missing")?;
        let model = self.facts().model.clone();
        // Without a model of our choice there is nothing the agent could be told to use differently.
        if let (Some(agent), Some(model)) = (&self.0.options.agent, model) {
            let options = json!({ "modelId": model, "reasoningEffort": effort });
            agent.set_model(&model, &options).await?;
        }
        self.facts().reasoning_effort = Some(effort.to_owned());
        Ok(json!({ "reasoningEffort": effort }))
    }

    /// Recorded events, from where the last read ended.
    fn rpc_read_events(&self, params: &Value) -> Result<Value, String> {
        let start = match params["cursor"].as_str() {
            None => 0,
            Some(cursor) => {
                cursor.parse::<usize>().map_err(|_| format!("{cursor:?} is not a cursor"))?
            }
        };
        let most = params["max"].as_u64().unwrap_or(200).clamp(1, MAX_READ_EVENTS as u64) as usize;
        let events = self.0.bus.recorded().map_err(|error| error.to_string())?;
        let total = events.len();
        let wanted = |event: &Value| match &params["types"] {
            Value::Array(types) => types.contains(&event["type"]),
            _ => true,
        };
        let read: Vec<_> = events.into_iter().skip(start).take(most).collect();
        let next = start.min(total) + read.len();
        let read: Vec<_> = read.into_iter().filter(wanted).collect();
        Ok(json!({
            "events": read,
            "cursor": next.to_string(),
            "hasMore": next < total,
            "cursorStatus": "ok",
        }))
    }

    fn rpc_extensions(&self) -> Value {
        let extensions: Vec<_> = self
            .list()
            .into_iter()
            .map(|info| {
                json!({
                    "id": info.id,
                    "name": info.name,
                    "source": info.source,
                    "status": info.status,
                })
            })
            .collect();
        json!({ "extensions": extensions })
    }

    fn rpc_commands(&self) -> Value {
        let commands: Vec<_> = self
            .commands()
            .into_iter()
            .map(|listing| {
                json!({
                    "name": listing.command.name,
                    "description": listing.command.description,
                    "kind": "client",
                    "allowDuringAgentExecution": true,
                    "extensionId": listing.extension_id,
                })
            })
            .collect();
        json!({ "commands": commands })
    }

    fn rpc_snapshot(&self) -> Value {
        let facts = self.facts();
        let started: chrono::DateTime<chrono::Utc> = facts.started.into();
        json!({
            "sessionId": self.id(),
            "startTime": started.to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            "modifiedTime": chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
            "isRemote": false,
            "alreadyInUse": false,
            "workingDirectory": self.cwd(),
            "workspacePath": self.folder(),
            "workspace": { "id": self.id(), "cwd": self.cwd(), "name": facts.name },
            "currentMode": facts.mode,
            "selectedModel": facts.model,
            "sessionLimits": null,
        })
    }

    fn rpc_usage(&self) -> Value {
        let facts = self.facts();
        let started = facts.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let mut metrics = json!({
            "totalPremiumRequestCost": 0,
            "totalUserRequests": facts.user_requests,
            "totalApiDurationMs": 0,
            "sessionStartTime": started.as_millis() as u64,
            "codeChanges": {
                "linesAdded": 0,
                "linesRemoved": 0,
                "filesModifiedCount": 0,
                "filesModified": [],
            },
            "lastCallInputTokens": facts.last_tokens.0,
            "lastCallOutputTokens": facts.last_tokens.1,
            "modelMetrics": facts.usage,
        });
        if let Some(model) = &facts.model {
            metrics["currentModel"] = model.as_str().into();
        }
        metrics
    }
}

/// A call that an extension makes.
struct Nested<'a>(&'a AtomicUsize);

impl Drop for Nested<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn read<T: DeserializeOwned>(path: &str, params: Value) -> Result<T, String> {
    serde_json::from_value(params).map_err(|error| format!("session.rpc.{path}: {error}"))
}

fn to_json(value: &impl serde::Serialize) -> Result<Value, String> {
    serde_json::to_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SessionOptions;
    use crate::discovery::Scope;

    #[tokio::test]
    async fn nobody_answers_for_one_that_was_given_secrets() {
        let temp = tempfile::tempdir().unwrap();
        let options = SessionOptions::new(temp.path().join("cwd"), temp.path().join("home"));
        let session = Session::new(options).unwrap();
        let key = |name: &str| (Scope::User, name.to_owned(), temp.path().join(name));
        let (owner, other) = (key("owner"), key("other"));
        let inner = &session.0;
        let waiting = inner.pending.open_of(Some(&owner), Kind::Tool, &inner.bus, "x.completed");
        session.may_answer(&other, &waiting.id).unwrap();
        let approvals = Approvals::of(&inner.options.home);
        approvals.remember(&identity(&owner), &["A_TOKEN".to_owned()]).unwrap();
        assert!(session.may_answer(&other, &waiting.id).is_err());
        session.may_answer(&owner, &waiting.id).unwrap();
    }
}
