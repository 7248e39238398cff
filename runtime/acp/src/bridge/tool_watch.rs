//! Tool calls of the agent: seen as they go by, told to extensions before and after, once each.

use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::future::Shared;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use serde_json::json;
use tenon_host::Permission;
use tenon_host::Session;
use tenon_host::front::Context;
use tenon_host::session::AgentTool;
use tenon_host::session::Turn;
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

/// How long what the agent says waits for extensions to hear of its tool calls, and the end of a turn that nobody
/// wants any more. A hook that waits for the agent would otherwise wait for itself.
const IN_ORDER: Duration = Duration::from_secs(5);

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
    /// What extensions said before it, once they have.
    before: OnceLock<Vec<(AgentTool, Verdict)>>,
    /// The answer to the agent's question about it; given once.
    pub answer: OnceCell<Value>,
    progress: Mutex<Progress>,
}

/// The tools of a call and their arguments.
type Subject = Vec<(String, Value)>;

/// Extensions are asked about a call; over when they have answered, for everybody who waits.
type Asking = Shared<BoxFuture<'static, ()>>;

#[derive(Default)]
struct Progress {
    /// The tool of ours that it calls. It stays ours when its extension goes.
    ours: Option<String>,
    /// The agent has asked about it.
    asked: bool,
    asking: Option<Asking>,
    ended: bool,
    /// The end of what had the same id before.
    earlier: Option<JoinHandle<()>>,
    tasks: Vec<JoinHandle<()>>,
}

impl ToolWatch {
    fn new() -> Self {
        Self(Arc::new(Watched {
            call: Mutex::new(json!({})),
            about: Mutex::default(),
            before: OnceLock::new(),
            answer: OnceCell::new(),
            progress: Mutex::default(),
        }))
    }

    /// Adds what an update says.
    fn learn(&self, update: &Value) {
        learn(&mut self.0.call.lock(), update);
    }

    /// Looks at what is known of the call. `look` may take locks of the session, and must wait for nothing.
    pub fn with_call<T>(&self, look: impl FnOnce(&Value) -> T) -> T {
        look(&self.0.call.lock())
    }

    /// Whether it is about this. Whoever asks first says what it is about.
    fn is_about(&self, subject: Subject) -> bool {
        let mut about = self.0.about.lock();
        *about.get_or_insert_with(|| subject.clone()) == subject
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.progress.lock()
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
        self.asking(session, tools).await;
        // Nothing was said if asking panicked, which was reported where it happened.
        self.0.before.get().map(Vec::as_slice).unwrap_or_default()
    }

    /// Has extensions asked, once. That goes on when nobody waits for it any more: who has heard of a call is not
    /// told of it again, and is told of its end.
    fn asking(&self, session: &Session, tools: Vec<AgentTool>) -> Asking {
        let mut progress = self.progress();
        if let Some(asking) = &progress.asking {
            return asking.clone();
        }
        let (session, watch, earlier) = (session.clone(), self.clone(), progress.earlier.take());
        let task = tokio::spawn(async move {
            if let Some(earlier) = earlier {
                // A panic in it was reported where it happened.
                let _ = earlier.await;
            }
            let said = ask(&session, tools).await;
            // Nobody else asks.
            let _ = watch.0.before.set(said);
        });
        let asking = task.map(drop).boxed().shared();
        progress.asking = Some(asking.clone());
        asking
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

    /// It is over, whatever more the agent says of it: extensions that have heard of it hear so.
    async fn end(&self, session: &Session, why: &str) {
        let (asking, tasks) = {
            let mut progress = self.progress();
            let mut tasks = std::mem::take(&mut progress.tasks);
            tasks.extend(progress.earlier.take());
            (progress.asking.clone(), tasks)
        };
        for task in tasks {
            // A panic in it was reported where it happened.
            let _ = task.await;
        }
        if let Some(asking) = asking {
            asking.await;
        }
        let ended = std::mem::replace(&mut self.progress().ended, true);
        if !ended {
            self.after(session, ToolResult::failure(why)).await;
        }
    }
}

/// Adds to an object, which is what is known of a call, what an update says.
pub(super) fn learn(call: &mut Value, update: &Value) {
    let Some(fields) = update.as_object() else { return };
    let title = fields.get("title").filter(|title| !title.is_null());
    if let (Some(title), None) = (title, call.get(vocabulary::FIRST_TITLE)) {
        call[vocabulary::FIRST_TITLE] = title.clone();
    }
    // Which title was the first is not for the agent to say.
    for (name, value) in fields.iter().filter(|(name, _)| *name != vocabulary::FIRST_TITLE) {
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

/// Asks extensions about the tools of a call, one after the other.
async fn ask(session: &Session, tools: Vec<AgentTool>) -> Vec<(AgentTool, Verdict)> {
    let mut said = Vec::new();
    for mut tool in tools {
        let args = tool.args.clone();
        let verdict = session.before_agent_tool(&mut tool).await;
        if tool.args != args {
            let message = format!(
                "an extension rewrote the arguments of {}, which is a tool of the agent: it uses its own",
                tool.name
            );
            let data = json!({ "warningType": "rewrite_without_effect", "message": message });
            session.emit("session.warning", data);
            tool.args = args;
        }
        for context in &verdict.contexts {
            tell_later(session, context.clone());
        }
        said.push((tool, verdict));
    }
    said
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
        let about = match self.recognise(session, &watch) {
            Recognised::Ours { tool, .. } => vec![(SERVER_NAME.to_owned(), tool.into())],
            Recognised::Foreign(tools) => subject(&tools),
        };
        if watch.is_about(about.clone()) {
            watch.progress().asked = true;
            return Some(watch);
        }
        let another = ToolWatch::new();
        watch.with_call(|call| another.learn(call));
        another.is_about(about);
        let id = question["toolCallId"].as_str()?.to_owned();
        let mut watches = self.watches();
        let replaced = watches.insert(id, another.clone());
        let mut progress = another.progress();
        progress.asked = true;
        progress.earlier = replaced.map(|replaced| {
            let session = session.clone();
            let why = "the agent has asked about something else in its place";
            tokio::spawn(async move { replaced.end(&session, why).await })
        });
        drop(progress);
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
        let known = watch.progress().ours.clone();
        let ours = |name: &str| {
            [DISPATCH_LIST, DISPATCH_CALL].contains(&name)
                || known.as_deref() == Some(name)
                || session.has_tool(name)
        };
        let recognised = watch.with_call(|call| vocabulary::recognise(call, &ours));
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
        let id = update["toolCallId"].as_str().unwrap_or_default();
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
                    let failed = status == "failed";
                    let result = watch.with_call(|call| result_of(call, update, failed));
                    self.observe(&session, &watch, tools, Some(result)).await;
                } else if status == "in_progress" {
                    self.observe(&session, &watch, tools, None).await;
                } else if status.is_empty()
                    && watch.0.before.get().is_some()
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
        let asked = watch.progress().asked;
        let (session, watched, agent) =
            (session.clone(), watch.clone(), self.definition.name.clone());
        let mut task = tokio::spawn(async move {
            let before = watched.before(&session, tools).await;
            let Some(result) = result else { return };
            // Who has asked, and says that it failed, has not used it: the question was cancelled.
            if !asked || result.error.is_none() {
                warn_of_denials(&session, &agent, before, asked);
            }
            watched.after(&session, result).await;
        });
        if tokio::time::timeout(IN_ORDER, &mut task).await.is_err() {
            watch.progress().tasks.push(task);
        }
    }

    /// The turn is over: what is returned tells extensions of the end of all its calls, also of those that never
    /// ended.
    pub(super) fn watches_end(&self) -> impl Future<Output = ()> + Send + use<> {
        let watches = std::mem::take(&mut *self.watches());
        if let Some(endpoint) = self.endpoint.get() {
            // What was announced and never called is not what the next call of the same tool is.
            watches.keys().for_each(|id| endpoint.calls().forget(id));
        }
        let session = self.session();
        async move {
            let Some(session) = session else { return };
            let all = async {
                for watch in watches.into_values() {
                    watch.end(&session, "the turn ended before the call did").await;
                }
            };
            if tokio::time::timeout(HEARING, all).await.is_err() {
                let message = "some extensions have not heard of every tool call of the turn";
                let data = json!({ "warningType": "agent_tools", "message": message });
                session.emit("session.warning", data);
            }
        }
    }

    /// The turn is over, and extensions have heard of the end of all its calls. They hear of it also if it is not
    /// waited for, which it is not for long if nobody wants the turn any more.
    pub(super) async fn watches_ended(&self, turn: &Turn) {
        let ending = tokio::spawn(self.watches_end());
        let given_up = async {
            turn.cancelled().await;
            tokio::time::sleep(IN_ORDER).await;
        };
        tokio::select! {
            biased;
            // A panic in it was reported where it happened.
            _ = ending => {}
            () = given_up => {}
        }
    }
}

/// A denial counts only where the agent asks.
fn warn_of_denials(session: &Session, agent: &str, before: &[(AgentTool, Verdict)], asked: bool) {
    let omitted = if asked { "got no permission" } else { "did not ask" };
    for (tool, verdict) in before {
        let Some(decided) = &verdict.decided else { continue };
        if decided.permission != Permission::Deny {
            continue;
        }
        let reason = decided.reason.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
        let message = format!(
            "{} denies {}{reason}; {agent} {omitted} before it used it, so it was not stopped",
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
pub(super) fn result_of(call: &Value, last: &Value, failed: bool) -> ToolResult {
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

/// A session without extensions, in which everything is permitted, and a bridge to no agent.
#[cfg(test)]
pub(super) mod stage {
    use std::path::PathBuf;

    use tenon_host::SessionOptions;
    use tenon_host::events::Event;
    use tenon_host::session::Agent;

    use super::super::OpeningParams;
    use super::*;
    use crate::agent::Outer;
    use crate::config::AgentsConfig;
    use crate::config::PermissionMode;
    use crate::definition::AgentDefinition;
    use crate::policy::PolicyFront;

    pub struct Stage {
        pub bridge: Arc<Bridge>,
        pub session: Session,
        /// The working directory.
        pub root: PathBuf,
        events: Arc<Mutex<Vec<String>>>,
        _temp: tempfile::TempDir,
    }

    impl Stage {
        pub fn new() -> Self {
            Self::behind(None)
        }

        /// With a client in front.
        pub fn behind(outer: Option<Arc<dyn Outer>>) -> Self {
            let temp = tempfile::tempdir().unwrap();
            let root = temp.path().canonicalize().unwrap();
            let mode = PermissionMode::ApproveAll;
            let session = Session::new(SessionOptions {
                front: Some(Arc::new(PolicyFront::new(mode, vec![root.clone()], None))),
                ..SessionOptions::new(root.clone(), root.clone())
            })
            .unwrap();
            let mut definition =
                AgentDefinition::resolve("demo", &AgentsConfig::default(), &root).unwrap();
            definition.client_fs = true;
            let opening = OpeningParams {
                cwd: root.clone(),
                additional_directories: Vec::new(),
                params: json!({}),
                tenon: root.clone(),
                guarded: false,
                choose_mode: true,
                shared: false,
                replay: false,
            };
            let bridge = Bridge::new(definition, mode, outer, opening);
            bridge.attach(session.downgrade());
            let events = Arc::new(Mutex::new(Vec::new()));
            let seen = events.clone();
            session.tap(move |event: &Event| {
                if let Some(what) = event.kind.strip_prefix("tool.execution_") {
                    let about = &event.data["arguments"]["command"];
                    let about = about.as_str().or(event.data["error"]["message"].as_str());
                    seen.lock().push(format!("{what} {}", about.unwrap_or_default()));
                }
            });
            Self { bridge, session, root, events, _temp: temp }
        }

        /// The beginnings of tool calls with their commands, and the ends with what went wrong, so far.
        pub fn events(&self) -> Vec<String> {
            self.events.lock().clone()
        }

        /// Waits until there are so many.
        pub async fn until(&self, count: usize) {
            while self.events().len() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }

    /// A call of the agent's shell, as it asks about it.
    pub fn bash(command: &str) -> Value {
        json!({ "toolCallId": "1", "kind": "execute", "rawInput": { "command": command } })
    }
}

#[cfg(test)]
mod tests {
    use super::stage::Stage;
    use super::stage::bash;
    use super::*;

    /// Extensions are asked about a call.
    async fn asks(stage: &Stage, watch: &ToolWatch) {
        let Recognised::Foreign(tools) = stage.bridge.recognise(&stage.session, watch) else {
            panic!("it is not ours")
        };
        assert_eq!(watch.before(&stage.session, tools).await.len(), 1);
    }

    #[tokio::test]
    async fn what_is_asked_about_in_the_place_of_another_begins_after_its_end() {
        let stage = Stage::new();
        let ask = |command: &str| stage.bridge.asked_about(&stage.session, &bash(command)).unwrap();
        asks(&stage, &ask("ls")).await;
        asks(&stage, &ask("ls")).await;
        asks(&stage, &ask("rm")).await;
        stage.bridge.watches_end().await;
        let expected = [
            "start ls",
            "complete the agent has asked about something else in its place",
            "start rm",
            "complete the turn ended before the call did",
        ];
        assert_eq!(stage.events(), expected);
    }

    #[tokio::test]
    async fn asking_goes_on_when_nobody_waits_for_it() {
        let stage = Stage::new();
        let watch = stage.bridge.asked_about(&stage.session, &bash("ls")).unwrap();
        assert!(asks(&stage, &watch).now_or_never().is_none());
        stage.bridge.watches_end().await;
        let expected = ["start ls", "complete the turn ended before the call did"];
        assert_eq!(stage.events(), expected);
    }

    #[test]
    fn what_updates_say_adds_up() {
        let watch = ToolWatch::new();
        watch.learn(
            &json!({ "toolCallId": "1", "title": "Terminal", "rawInput": {}, "content": [] }),
        );
        watch.learn(&json!({ "toolCallId": "1", "title": null, "rawInput": { "command": "ls" } }));
        watch.learn(&json!({ "toolCallId": "1", "content": [{ "type": "x" }] }));
        watch.learn(&json!({ "toolCallId": "1", "rawInput": { "cwd": "/" }, "content": [] }));
        watch.with_call(|call| {
            assert_eq!(call["title"], "Terminal");
            assert_eq!(call["rawInput"], json!({ "command": "ls", "cwd": "/" }));
            assert_eq!(call["content"], json!([{ "type": "x" }]));
        });
    }

    #[test]
    fn the_first_title_is_the_first_that_says_something() {
        let watch = ToolWatch::new();
        for update in [
            json!({ "title": null, "firstTitle": "no" }),
            json!({ "title": "one" }),
            json!({ "title": "two", "firstTitle": "no" }),
        ] {
            watch.learn(&update);
        }
        watch.with_call(|call| assert_eq!(*call, json!({ "firstTitle": "one", "title": "two" })));
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
