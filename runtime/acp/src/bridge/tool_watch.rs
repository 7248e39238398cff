//! Tool calls of the agent: seen as they go by, told to extensions before and after, once each.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use serde_json::Value;
use serde_json::json;
use tenon_host::Permission;
use tenon_host::Session;
use tenon_host::front::Context;
use tenon_host::session::AgentTool;
use tenon_host::session::Verdict;
use tenon_host::tool::ToolResult;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

use super::Bridge;
use crate::endpoint::DISPATCH_CALL;
use crate::endpoint::DISPATCH_LIST;
use crate::endpoint::SERVER_NAME;
use crate::vocabulary;
use crate::vocabulary::Recognised;

/// How long the end of a turn waits for extensions to hear of the calls in it. Hooks have deadlines of their own.
const HEARING: Duration = Duration::from_secs(60);

/// How long what the agent says waits for extensions to hear of its tool calls. A hook that waits for the agent
/// would otherwise wait for itself.
const IN_ORDER: Duration = Duration::from_secs(1);

/// The most tool calls of one turn that are watched. A turn with more is a flood.
const MAX_WATCHED: usize = 10_000;

/// One call of one of the agent's tools, or of ours.
#[derive(Clone)]
pub(super) struct ToolWatch(Arc<Watched>);

struct Watched {
    /// What is known of it so far.
    call: Mutex<Value>,
    /// What extensions and the person are asked about, once they are.
    about: Mutex<Option<Subject>>,
    /// What extensions said before it; asked once.
    before: OnceCell<Vec<(AgentTool, Verdict)>>,
    /// The answer to the agent's question about it; given once.
    pub answer: OnceCell<Value>,
    progress: Mutex<Progress>,
}

/// The tools of a call and their arguments.
type Subject = Vec<(String, Value)>;

#[derive(Default)]
struct Progress {
    /// The tool of ours that it calls. It stays ours when its extension goes.
    ours: Option<String>,
    ended: bool,
    tasks: Vec<JoinHandle<()>>,
}

impl ToolWatch {
    fn new() -> Self {
        Self(Arc::new(Watched {
            call: Mutex::new(json!({})),
            about: Mutex::default(),
            before: OnceCell::new(),
            answer: OnceCell::new(),
            progress: Mutex::default(),
        }))
    }

    /// Adds what an update says.
    fn learn(&self, update: &Value) {
        let mut call = self.0.call.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(fields) = update.as_object() else { return };
        if let (Some(title), None) = (fields.get("title"), call.get(vocabulary::FIRST_TITLE)) {
            call[vocabulary::FIRST_TITLE] = title.clone();
        }
        for (name, value) in fields {
            let known = &mut call[name.as_str()];
            match (name.as_str(), known, value) {
                (_, _, Value::Null) => {}
                // Agents tell the input in parts, and in other words when they ask.
                ("rawInput" | "_meta", Value::Object(known), Value::Object(more)) => {
                    known.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
                }
                ("content" | "locations", Value::Array(known), Value::Array(more))
                    if more.is_empty() && !known.is_empty() => {}
                (_, known, value) => *known = value.clone(),
            }
        }
    }

    /// What is known of the call.
    pub fn call(&self) -> Value {
        self.0.call.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether it is about this. Whoever asks first says what it is about.
    fn is_about(&self, subject: Subject) -> bool {
        let mut about = self.0.about.lock().unwrap_or_else(PoisonError::into_inner);
        *about.get_or_insert_with(|| subject.clone()) == subject
    }

    fn progress(&self) -> std::sync::MutexGuard<'_, Progress> {
        self.0.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It may not be done, and is over with that: nothing can follow but the agent's own words for it.
    pub async fn deny(&self, session: &Session, why: String) {
        let ended = std::mem::replace(&mut self.progress().ended, true);
        if !ended {
            self.after(session, ToolResult::denied(why)).await;
        }
    }

    /// The answer to the agent's question about it: the same one, however often it asks.
    pub async fn answer(&self, answer: impl Future<Output = Value>) -> Value {
        self.0.answer.get_or_init(|| answer).await.clone()
    }

    /// What extensions say before the call: asked once, however often it comes up.
    pub async fn before(
        &self,
        session: &Session,
        tools: Vec<AgentTool>,
    ) -> &[(AgentTool, Verdict)] {
        let ask = async {
            let mut said = Vec::new();
            for mut tool in tools {
                let args = tool.args.clone();
                let verdict = session.before_agent_tool(&mut tool).await;
                if tool.args != args {
                    let message = format!(
                        "an extension rewrote the arguments of {}, which is a tool of the agent: it uses its own",
                        tool.name
                    );
                    let data =
                        json!({ "warningType": "rewrite_without_effect", "message": message });
                    session.emit("session.warning", data);
                    tool.args = args;
                }
                for context in &verdict.contexts {
                    tell_later(session, context.clone());
                }
                said.push((tool, verdict));
            }
            said
        };
        self.0.before.get_or_init(|| ask).await
    }

    /// What extensions say after it.
    async fn after(&self, session: &Session, result: ToolResult) {
        let Some(before) = self.0.before.get() else { return };
        for (tool, _) in before {
            let outcome = session.after_agent_tool(tool, result.clone()).await;
            for context in outcome.after {
                tell_later(session, context);
            }
        }
    }
}

/// What an extension says about a tool of the agent reaches it with the next message: its result is not ours.
pub(super) fn tell_later(session: &Session, context: Context) {
    if let Err(why) = session.add_context(context) {
        let data = json!({ "warningType": "context_lost", "message": why });
        session.emit("session.warning", data);
    }
}

fn subject(tools: &[AgentTool]) -> Subject {
    tools.iter().map(|tool| (tool.name.clone(), tool.args.clone())).collect()
}

impl Bridge {
    /// The watch of a call that the agent asks about. An id may come again, and what was told first may not have
    /// been all: whoever has answered something else has not answered this.
    pub(super) fn asked_about(&self, session: &Session, question: &Value) -> Option<ToolWatch> {
        let watch = self.watch(question)?;
        let call = watch.call();
        let about = match self.recognise(session, &watch) {
            Recognised::Ours { tool, .. } => vec![(SERVER_NAME.to_owned(), tool.into())],
            Recognised::Foreign(tools) => subject(&tools),
        };
        if watch.is_about(about.clone()) {
            return Some(watch);
        }
        let another = ToolWatch::new();
        another.learn(&call);
        another.is_about(about);
        another.progress().tasks = std::mem::take(&mut watch.progress().tasks);
        self.watches().insert(question["toolCallId"].as_str()?.to_owned(), another.clone());
        Some(another)
    }

    /// The watch of a call, with what is now known of it.
    pub(super) fn watch(&self, update: &Value) -> Option<ToolWatch> {
        let id = update["toolCallId"].as_str()?;
        let mut watches = self.watches();
        if watches.len() >= MAX_WATCHED && !watches.contains_key(id) {
            return None;
        }
        let watch = watches.entry(id.to_owned()).or_insert_with(ToolWatch::new).clone();
        drop(watches);
        watch.learn(update);
        Some(watch)
    }

    /// What a call is about.
    pub(super) fn recognise(&self, session: &Session, watch: &ToolWatch) -> Recognised {
        let call = &watch.call();
        let known = watch.progress().ours.clone();
        let ours = |name: &str| {
            [DISPATCH_LIST, DISPATCH_CALL].contains(&name)
                || known.as_deref() == Some(name)
                || session.tools().iter().any(|listing| listing.tool.name == name)
        };
        let recognised = vocabulary::recognise(call, &ours);
        if let Recognised::Ours { tool, .. } = &recognised {
            watch.progress().ours = Some(tool.clone());
        }
        match recognised {
            Recognised::Ours { tool, args: Some(mut args) } if tool == DISPATCH_CALL => {
                let tool = args["name"].as_str().unwrap_or(DISPATCH_CALL).to_owned();
                Recognised::Ours { tool, args: Some(args["arguments"].take()) }
            }
            other => other,
        }
    }

    /// The agent says something about a call.
    pub(super) async fn tool_update(&self, update: &Value) {
        let (Some(session), Some(watch)) = (self.session(), self.watch(update)) else { return };
        let call = watch.call();
        let id = call["toolCallId"].as_str().unwrap_or_default();
        let status = update["status"].as_str().unwrap_or_default();
        let over = matches!(status, "completed" | "failed");
        match self.recognise(&session, &watch) {
            Recognised::Ours { tool, args } => {
                let Some(endpoint) = self.endpoint.get() else { return };
                if over {
                    endpoint.calls().forget(id);
                } else {
                    endpoint.calls().announce(&tool, args.as_ref(), id);
                }
            }
            Recognised::Foreign(tools) => {
                if over && !std::mem::replace(&mut watch.progress().ended, true) {
                    let result = result_of(&call, update, status == "failed");
                    self.observe(&session, &watch, tools, Some(result)).await;
                } else if status == "in_progress" {
                    self.observe(&session, &watch, tools, None).await;
                } else if status.is_empty()
                    && watch.0.before.initialized()
                    && let Some(text) = update["content"][0]["content"]["text"].as_str()
                {
                    let data = json!({ "toolCallId": id, "progressMessage": text });
                    session.emit_ephemeral("tool.execution_progress", data);
                }
            }
        }
    }

    /// Tells extensions of a call that the agent makes, and of its end. What the agent says next comes after
    /// that, unless an extension takes long.
    async fn observe(
        &self,
        session: &Session,
        watch: &ToolWatch,
        tools: Vec<AgentTool>,
        result: Option<ToolResult>,
    ) {
        watch.is_about(subject(&tools));
        let (session, watched, agent) =
            (session.clone(), watch.clone(), self.definition.name.clone());
        let mut task = tokio::spawn(async move {
            let before = watched.before(&session, tools).await;
            let Some(result) = result else { return };
            warn_of_denials(&session, &agent, before);
            watched.after(&session, result).await;
        });
        if tokio::time::timeout(IN_ORDER, &mut task).await.is_err() {
            watch.progress().tasks.push(task);
        }
    }

    /// The turn is over: extensions have heard of all its calls, also of those that never ended.
    pub(super) async fn watches_end(&self) {
        let watches = std::mem::take(&mut *self.watches());
        if let Some(endpoint) = self.endpoint.get() {
            // What was announced and never called is not what the next call of the same tool is.
            watches.keys().for_each(|id| endpoint.calls().forget(id));
        }
        let Some(session) = self.session() else { return };
        let all = async {
            for watch in watches.into_values() {
                let tasks = std::mem::take(&mut watch.progress().tasks);
                for task in tasks {
                    // A panic in it was reported where it happened.
                    let _ = task.await;
                }
                let ended = std::mem::replace(&mut watch.progress().ended, true);
                if !ended {
                    let result = ToolResult::failure("the turn ended before the call did");
                    watch.after(&session, result).await;
                }
            }
        };
        if tokio::time::timeout(HEARING, all).await.is_err() {
            self.warn(
                "agent_tools",
                "some extensions have not heard of every tool call of the turn",
            );
        }
    }
}

/// A denial counts only where the agent asks.
fn warn_of_denials(session: &Session, agent: &str, before: &[(AgentTool, Verdict)]) {
    for (tool, verdict) in before {
        let Some(decided) = &verdict.decided else { continue };
        if decided.permission != Permission::Deny {
            continue;
        }
        let reason = decided.reason.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
        let message = format!(
            "{} denies {}{reason}; {agent} did not ask before it used it, so it was not stopped",
            decided.by, tool.name
        );
        let data = json!({
            "warningType": "denial_without_effect",
            "message": message,
            "extensionId": decided.by,
            "toolCallId": tool.id,
        });
        session.emit("session.warning", data);
        let text = format!("{} should not have been used{reason}", tool.name);
        tell_later(session, Context { extension: decided.by.clone(), text });
    }
}

/// What a call came to, as far as the agent says. What was shown before its end may be what it was to do.
fn result_of(call: &Value, last: &Value, failed: bool) -> ToolResult {
    let content = last["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |item: &Value| match item["type"].as_str() {
        Some("content") => item["content"]["text"].as_str().map(str::to_owned),
        Some("diff") => Some(format!("changed {}", item["path"].as_str().unwrap_or_default())),
        _ => None,
    };
    let mut said: Vec<String> = content.iter().filter_map(text).collect();
    if said.is_empty() {
        let raw = &call["rawOutput"];
        let names = ["output", "formatted_output", "stdout", "content", "error", "message"];
        let known: Vec<_> = names.iter().map(|name| &raw[name]).chain([raw]).collect();
        let of_terminal = call["_meta"]["terminal_output_delta"]["data"].as_str();
        let text = known.iter().find_map(|it| it.as_str()).or(of_terminal);
        said.extend(match text {
            Some(text) => Some(text.to_owned()),
            None if raw.is_null() => None,
            None => Some(raw.to_string()),
        });
    }
    let said = said.join("\n");
    if failed { ToolResult::failure(said) } else { ToolResult::success(said) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_updates_say_adds_up() {
        let watch = ToolWatch::new();
        watch.learn(
            &json!({ "toolCallId": "1", "title": "Terminal", "rawInput": {}, "content": [] }),
        );
        watch.learn(&json!({ "toolCallId": "1", "title": null, "rawInput": { "command": "ls" } }));
        watch.learn(&json!({ "toolCallId": "1", "content": [{ "type": "x" }] }));
        watch.learn(&json!({ "toolCallId": "1", "rawInput": { "cwd": "/" }, "content": [] }));
        let call = watch.call();
        assert_eq!(call["title"], "Terminal");
        assert_eq!(call["rawInput"], json!({ "command": "ls", "cwd": "/" }));
        assert_eq!(call["content"], json!([{ "type": "x" }]));
    }

    #[test]
    fn a_watch_is_about_what_was_asked_first() {
        let watch = ToolWatch::new();
        let bash = |command: &str| vec![("bash".to_owned(), json!({ "command": command }))];
        assert!(watch.is_about(bash("ls")));
        assert!(watch.is_about(bash("ls")));
        assert!(!watch.is_about(bash("rm -rf /")));
        assert!(watch.is_about(bash("ls")));
    }

    #[test]
    fn a_result_is_the_text_that_is_shown_or_the_raw_output() {
        let shown = json!({ "content": [{ "type": "content", "content": { "type": "text", "text": "hi" } }] });
        let result_of = |call: &Value, failed| super::result_of(call, call, failed);
        assert_eq!(result_of(&shown, false).text_result_for_llm, "hi");
        let planned = super::result_of(&shown, &json!({ "status": "completed" }), false);
        assert_eq!(planned.text_result_for_llm, "");
        let raw = json!({ "rawOutput": { "output": "raw", "exit": 0 } });
        assert_eq!(result_of(&raw, false).text_result_for_llm, "raw");
        assert_eq!(
            result_of(&json!({ "rawOutput": "plain" }), true).error.as_deref(),
            Some("plain")
        );
    }
}
