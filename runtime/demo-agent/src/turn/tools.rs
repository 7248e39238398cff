//! Tool calls of the demo agent: those of MCP servers, and its own, which may need somebody's permission.

use std::path::Path;
use std::path::PathBuf;

use agent_client_protocol::v1::schema::Diff;
use agent_client_protocol::v1::schema::PermissionOption;
use agent_client_protocol::v1::schema::PermissionOptionKind;
use agent_client_protocol::v1::schema::RequestPermissionOutcome;
use agent_client_protocol::v1::schema::RequestPermissionRequest;
use agent_client_protocol::v1::schema::SessionUpdate;
use agent_client_protocol::v1::schema::ToolCall;
use agent_client_protocol::v1::schema::ToolCallContent;
use agent_client_protocol::v1::schema::ToolCallLocation;
use agent_client_protocol::v1::schema::ToolCallStatus;
use agent_client_protocol::v1::schema::ToolCallUpdate;
use agent_client_protocol::v1::schema::ToolCallUpdateFields;
use agent_client_protocol::v1::schema::ToolKind;
use serde_json::Value;
use serde_json::json;

use super::Stop;
use super::Turn;
use super::client::describe;
use crate::command;
use crate::directive::Call;
use crate::live::BYPASS_MODE;
use crate::live::PLAN_MODE;
use crate::mcp;

/// What somebody who is asked can choose: id, name, kind.
const OPTIONS: [(&str, &str, PermissionOptionKind); 3] = [
    ("allow_once", "Allow", PermissionOptionKind::AllowOnce),
    ("allow_always", "Always allow", PermissionOptionKind::AllowAlways),
    ("reject_once", "Reject", PermissionOptionKind::RejectOnce),
];

/// What came of a tool call.
struct Done {
    status: ToolCallStatus,
    text: String,
    content: Vec<ToolCallContent>,
    output: Value,
}

impl Done {
    fn new(went_well: bool, text: String, output: Value) -> Self {
        let status = if went_well { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
        Self { status, content: vec![text.clone().into()], text, output }
    }

    fn failed(why: impl std::fmt::Display) -> Self {
        Self::new(false, why.to_string(), json!({ "error": why.to_string() }))
    }
}

/// What came of asking.
enum Asked {
    Chosen(PermissionOptionKind),
    Cancelled,
    Failed(String),
}

impl Asked {
    /// As it is said.
    fn describe(&self) -> String {
        match self {
            Self::Chosen(kind) => {
                let chosen = OPTIONS.iter().find(|(_, _, offered)| offered == kind);
                chosen.map_or("an option that was not offered", |(id, ..)| *id).to_owned()
            }
            Self::Cancelled => "cancelled".to_owned(),
            Self::Failed(why) => why.clone(),
        }
    }
}

impl Turn {
    /// Calls a tool of an MCP server; what it says.
    pub(super) async fn call(&self, call: Call) -> Result<String, Stop> {
        let found = self.live.servers.find(&call.tool).await;
        let title = match &found {
            Some((server, tool)) => server.title(tool),
            None => call.tool.clone(),
        };
        let id = self.live.next_call();
        let announced =
            ToolCall::new(id.clone(), title).raw_input(Value::Object(call.args.clone()));
        let work = async {
            let Some((server, tool)) = found else {
                return Done::failed(format!("there is no tool {}", call.tool));
            };
            let id = (!self.agent.options.no_meta).then_some(id.as_str());
            match server.call(tool, call.args, id).await {
                Ok(result) => {
                    let output = serde_json::to_value(&result).unwrap_or_default();
                    Done::new(result.is_error != Some(true), mcp::text_of(&result), output)
                }
                Err(why) => Done::failed(why),
            }
        };
        self.tool(announced, false, work).await
    }

    /// Runs a shell command; what it prints.
    pub(super) async fn run_command(&self, command: &str) -> Result<String, Stop> {
        let input = json!({ "command": command, "description": "Runs what the prompt says" });
        let announced =
            ToolCall::new(self.live.next_call(), command).kind(ToolKind::Execute).raw_input(input);
        let work = async {
            match command::run(command, &self.live.cwd, &self.agent.options.environment).await {
                Ok(finished) => {
                    let code = finished.status.code();
                    let output = json!({ "exitCode": code, "output": finished.output });
                    let mut text = finished.output;
                    if !finished.status.success() {
                        text.push_str(&format!("\n[{}]", finished.status));
                    }
                    Done::new(finished.status.success(), text, output)
                }
                Err(error) => Done::failed(error),
            }
        };
        self.tool(announced, true, work).await
    }

    /// Writes a file.
    pub(super) async fn write(&self, path: &str, content: String) -> Result<String, Stop> {
        let file = self.file(path);
        let before = tokio::fs::read_to_string(&file).await.ok();
        let diff = Diff::new(file.clone(), content.clone()).old_text(before);
        let input = json!({ "path": file, "content": content });
        let announced = self.edit(format!("Write {path}"), &file, diff.clone(), input);
        let work = async {
            if let Some(folder) = file.parent()
                && let Err(error) = tokio::fs::create_dir_all(folder).await
            {
                return Done::failed(format!("{}: {error}", folder.display()));
            }
            match tokio::fs::write(&file, content).await {
                Ok(()) => edited(format!("wrote {path}"), diff),
                Err(error) => Done::failed(format!("{path}: {error}")),
            }
        };
        self.tool(announced, true, work).await
    }

    /// Replaces a text in a file, where it is first.
    pub(super) async fn replace(
        &self,
        path: &str,
        old: String,
        new: String,
    ) -> Result<String, Stop> {
        let file = self.file(path);
        let diff = Diff::new(file.clone(), new.clone()).old_text(old.clone());
        let input = json!({ "path": file, "old_string": old, "new_string": new });
        let announced = self.edit(format!("Edit {path}"), &file, diff.clone(), input);
        let work = async {
            let text = match tokio::fs::read_to_string(&file).await {
                Ok(text) => text,
                Err(error) => return Done::failed(format!("{path}: {error}")),
            };
            if !text.contains(&old) {
                return Done::failed(format!("{path} does not contain {old:?}"));
            }
            match tokio::fs::write(&file, text.replacen(&old, &new, 1)).await {
                Ok(()) => edited(format!("edited {path}"), diff),
                Err(error) => Done::failed(format!("{path}: {error}")),
            }
        };
        self.tool(announced, true, work).await
    }

    /// Reads a file; its text.
    pub(super) async fn read(&self, path: &str) -> Result<String, Stop> {
        let file = self.file(path);
        let announced = ToolCall::new(self.live.next_call(), format!("Read {path}"))
            .kind(ToolKind::Read)
            .locations(vec![ToolCallLocation::new(file.clone())])
            .raw_input(json!({ "path": file }));
        let work = async {
            match tokio::fs::read_to_string(&file).await {
                Ok(text) => Done::new(true, text.clone(), json!({ "content": text })),
                Err(error) => Done::failed(format!("{path}: {error}")),
            }
        };
        self.tool(announced, false, work).await
    }

    /// Asks for permission, and does nothing with it; the answer.
    pub(super) async fn permit(
        &self,
        kind: &str,
        title: String,
        input: Option<Value>,
    ) -> Result<String, Stop> {
        let kind: ToolKind = serde_json::from_value(kind.into()).unwrap_or_default();
        let call = ToolCall::new(self.live.next_call(), title).kind(kind).raw_input(input);
        let asked = self.ask(call).await;
        self.answered(&[asked])
    }

    /// Asks twice at the same time for the permission to make one call; the answers.
    pub(super) async fn permit_twice(&self, title: String) -> Result<String, Stop> {
        let call = ToolCall::new(self.live.next_call(), title).kind(ToolKind::Execute);
        let (first, second) = tokio::join!(self.ask(call.clone()), self.ask(call));
        self.answered(&[first, second])
    }

    fn answered(&self, asked: &[Asked]) -> Result<String, Stop> {
        if asked.iter().any(|asked| matches!(asked, Asked::Cancelled)) && !self.agent.is_deaf() {
            return Err(Stop::Cancelled);
        }
        let answers: Vec<_> = asked.iter().map(Asked::describe).collect();
        Ok(format!("permission: {}", answers.join(", ")))
    }

    /// A path of the prompt, in the session's directory unless it is absolute.
    pub(super) fn file(&self, path: &str) -> PathBuf {
        self.live.cwd.join(path)
    }

    fn edit(&self, title: String, file: &Path, diff: Diff, input: Value) -> ToolCall {
        ToolCall::new(self.live.next_call(), title)
            .kind(ToolKind::Edit)
            .locations(vec![ToolCallLocation::new(file)])
            .content(vec![diff.into()])
            .raw_input(input)
    }

    /// A tool call from its announcement to its end; its text. Whatever goes wrong with it is its result.
    async fn tool(
        &self,
        call: ToolCall,
        needs_permission: bool,
        work: impl Future<Output = Done>,
    ) -> Result<String, Stop> {
        let id = call.tool_call_id.clone();
        self.update(SessionUpdate::ToolCall(call.clone()));
        let done = match self.refusal(call, needs_permission).await {
            Err(Stop::Cancelled) => None,
            Err(Stop::Failed(why)) => Some(Done::failed(why)),
            Ok(()) => {
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                let update = ToolCallUpdate::new(id.clone(), fields);
                self.update(SessionUpdate::ToolCallUpdate(update));
                self.unless_cancelled(work).await.ok()
            }
        };
        let cancelled = done.is_none();
        let done = done.unwrap_or_else(|| Done::failed("cancelled"));
        let fields = ToolCallUpdateFields::new()
            .status(done.status)
            .content(done.content)
            .raw_output(done.output);
        self.update(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id, fields)));
        if cancelled { Err(Stop::Cancelled) } else { Ok(done.text) }
    }

    /// Why a call is not to be made, as an error.
    async fn refusal(&self, call: ToolCall, needs_permission: bool) -> Result<(), Stop> {
        let (mode, kind) = (self.live.mode(), call.kind);
        if !needs_permission {
            return Ok(());
        }
        if mode == PLAN_MODE {
            return Err(Stop::Failed("nothing is changed in plan mode".to_owned()));
        }
        let allowed = self.live.state().always.contains(&kind);
        if allowed || mode == BYPASS_MODE || self.agent.options.never_ask {
            return Ok(());
        }
        match self.ask(call).await {
            Asked::Chosen(PermissionOptionKind::AllowOnce) => Ok(()),
            Asked::Chosen(PermissionOptionKind::AllowAlways) => {
                self.live.state().always.push(kind);
                Ok(())
            }
            Asked::Chosen(_) => Err(Stop::Failed("permission was refused".to_owned())),
            Asked::Cancelled if self.agent.is_deaf() => {
                Err(Stop::Failed("permission was not given".to_owned()))
            }
            Asked::Cancelled => Err(Stop::Cancelled),
            Asked::Failed(why) => Err(Stop::Failed(why)),
        }
    }

    /// Asks the client. It is the client's part to answer when the turn is cancelled meanwhile.
    async fn ask(&self, call: ToolCall) -> Asked {
        let options = OPTIONS.map(|(id, name, kind)| PermissionOption::new(id, name, kind));
        let request =
            RequestPermissionRequest::new(self.live.id.clone(), call.into(), options.to_vec());
        let answer = self.cx.send_request(request).block_task().await;
        match answer.map(|response| response.outcome) {
            Ok(RequestPermissionOutcome::Selected(selected)) => {
                let chosen = OPTIONS.iter().find(|(id, ..)| **id == *selected.option_id.0);
                match chosen {
                    Some((_, _, kind)) => Asked::Chosen(*kind),
                    None => Asked::Failed(format!("{} was not offered", selected.option_id)),
                }
            }
            Ok(_) => Asked::Cancelled,
            Err(error) => Asked::Failed(describe(&error)),
        }
    }
}

/// A change that was made.
fn edited(text: String, diff: Diff) -> Done {
    let output = json!({ "result": text });
    Done { status: ToolCallStatus::Completed, text, content: vec![diff.into()], output }
}
