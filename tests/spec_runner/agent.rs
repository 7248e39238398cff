//! An agent that does with each prompt what the script says.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::task::Poll;

use async_trait::async_trait;
use serde_json::Value;
use tenon_host::Permission;
use tenon_host::Session;
use tenon_host::front::AgentError;
use tenon_host::front::AgentPrompt;
use tenon_host::front::Answer;
use tenon_host::front::StopReason;
use tenon_host::session::Agent;
use tenon_host::session::AgentTool;
use tenon_host::session::CallError;
use tenon_host::session::McpTool;
use tenon_host::session::PermissionCheck;
use tenon_host::session::SubagentCall;
use tenon_host::session::SubagentEnd;
use tenon_host::session::ToolCall;
use tenon_host::session::ToolOutcome;
use tenon_host::session::Turn;
use tenon_host::session::Verdict;
use tenon_host::tool::ToolResult;
use tenon_protocol::permission::PermissionRequest;
use tokio::sync::watch;

use crate::script::Asking;
use crate::script::Call;
use crate::script::Emit;
use crate::script::Header;
use crate::script::OtherKind;
use crate::script::OtherRequest;
use crate::script::Own;
use crate::script::Step;
use crate::script::Subagent;
use crate::stage::Stage;
use crate::text;

/// See the module.
pub struct ScriptedAgent {
    stage: Arc<Stage>,
    built_in_tools: Vec<String>,
    models: Vec<Value>,
    steers: bool,
    /// Whether there is a prompt to add to.
    working: AtomicBool,
    /// Counts up whenever the running prompt is cancelled.
    cancels: watch::Sender<u64>,
    /// Counts what the script gives no identity.
    unnamed: AtomicUsize,
}

/// How a call ended, if it could be made.
pub type Called = Result<ToolOutcome, CallError>;

/// How a prompt ended, if a step ended it.
type Ended = Option<Result<Answer, AgentError>>;

impl ScriptedAgent {
    /// The agent that a header describes, if it wants one.
    pub fn new(header: &Header, stage: Arc<Stage>) -> Option<Self> {
        header.agent.present().map(|setting| Self {
            stage,
            built_in_tools: header.built_in_tools.clone(),
            models: header.models.clone(),
            steers: setting.steer,
            working: AtomicBool::new(false),
            cancels: watch::Sender::new(0),
            unnamed: AtomicUsize::new(0),
        })
    }

    fn write_prompt(&self, how: &str, prompt: &AgentPrompt) {
        for context in &prompt.context {
            self.stage
                .write(format!("agent {how} context {}: {}", context.extension, context.text));
        }
        self.stage.write(format!("agent {how} {}", prompt.text));
        for attachment in prompt.attachments.iter() {
            self.stage.write(format!("agent {how} attachment {}", text::json(attachment)));
        }
        if let Some(mode) = &prompt.agent_mode {
            self.stage.write(format!("agent {how} in mode {mode}"));
        }
    }

    fn id(&self, given: Option<String>, kind: &str) -> String {
        let number = || self.unnamed.fetch_add(1, Ordering::Relaxed) + 1;
        given.unwrap_or_else(|| format!("{kind}-{}", number()))
    }

    /// Takes a step of a prompt that came when `start` events had been seen.
    async fn perform(&self, turn: &Turn, start: usize, step: Step) -> Ended {
        let session = turn.session();
        match step {
            Step::Say(step) => turn.message(&step.say),
            Step::Delta(step) => turn.delta(&step.delta),
            Step::Think(step) => turn.reasoning(&step.think),
            Step::Usage(step) => turn.usage(step.usage),
            Step::Call(call) => {
                let outcome = run_call(session, &call).await;
                return self.show_call(&call.call, &outcome);
            }
            Step::Parallel(step) => {
                let outcomes = run_calls(session, &step.parallel).await;
                let shown = step.parallel.iter().zip(&outcomes);
                let ended: Vec<Ended> =
                    shown.map(|(call, outcome)| self.show_call(&call.call, outcome)).collect();
                return ended.into_iter().find_map(|ended| ended);
            }
            Step::Own(step) => return self.own(session, *step).await,
            Step::Permission(step) => {
                let request = PermissionRequest::Other(step.permission);
                let decision = session.request_permission(&request).await;
                self.stage.write(format!("agent: permission -> {}", text::json(&decision)));
            }
            Step::Ask(step) => {
                let answer = session.ask_user(&step.ask).await;
                self.stage.write(format!("agent: ask -> {}", text::json(&answer)));
            }
            Step::Elicit(step) => {
                let answer = session.elicit(&step.elicit, step.asker.as_deref()).await;
                self.stage.write(format!("agent: elicit -> {}", text::json(&answer)));
            }
            Step::Request(step) => {
                let answer = ask_other(session, &step).await;
                let kind = text::json(&step.request);
                self.stage.write(format!(
                    "agent: {} -> {}",
                    kind.trim_matches('"'),
                    text::json(&answer)
                ));
            }
            Step::Subagent(step) => self.subagent(session, step.subagent).await,
            Step::Emit(step) => emit(session, step),
            Step::Await(step) => {
                self.stage.event(start, &step.r#await, step.r#where.as_ref()).await;
            }
            Step::Wait(step) => self.stage.signalled(&step.wait).await,
            Step::Hang(_) => std::future::pending().await,
            Step::Fail(step) => {
                return Some(Err(AgentError {
                    message: step.fail,
                    context: step.context,
                    recoverable: step.recoverable,
                    native: None,
                }));
            }
            Step::Stop(step) => return Some(Ok(StopReason(step.stop).into())),
        }
        None
    }

    fn show_call(&self, tool: &str, outcome: &Called) -> Ended {
        let prefix = format!("agent: {tool} ->");
        match outcome {
            Ok(outcome) => {
                self.stage.write_outcome(&prefix, outcome);
                outcome.ends_turn.then(|| Ok(StopReason::end_turn().into()))
            }
            Err(error) => {
                self.stage.write(format!("{prefix} error: {error}"));
                None
            }
        }
    }

    /// One of the agent's own tools, with the session's word before and after it.
    async fn own(&self, session: &Session, step: Own) -> Ended {
        let mut tool = AgentTool {
            id: self.id(step.id, "own"),
            name: step.own,
            args: step.args,
            native: step.native.map(|native| (native.name, native.args)),
            agent_id: step.agent,
            mcp: step.mcp.map(|mcp| McpTool { server: mcp.server, tool: mcp.tool, meta: mcp.meta }),
            ..AgentTool::default()
        };
        let verdict = session.before_agent_tool(&mut tool).await;
        let name = tool.name.clone();
        self.stage.write(format!("own {name} {}: {}", text::json(&tool.args), describe(&verdict)));
        if let Some(mcp) = &tool.mcp {
            self.stage.write(format!("own {name} meta {}", text::json(&mcp.meta)));
        }
        for context in &verdict.contexts {
            self.stage.write(format!("own {name} context {}: {}", context.extension, context.text));
        }
        let result = match step.failure {
            _ if !self.may_run(session, &tool, &verdict).await => {
                ToolResult::denied("it was not run")
            }
            Some(failure) => ToolResult::failure(failure),
            None => ToolResult::success(step.result),
        };
        let outcome = session.after_agent_tool(&tool, result).await;
        self.stage.write_outcome(&format!("own {name} ->"), &outcome);
        outcome.ends_turn.then(|| Ok(StopReason::end_turn().into()))
    }

    /// Whether a tool may run, going by what extensions said; asks where they want somebody asked.
    async fn may_run(&self, session: &Session, tool: &AgentTool, verdict: &Verdict) -> bool {
        let Some(decided) = &verdict.decided else { return true };
        match decided.permission {
            Permission::Allow => true,
            Permission::Deny => false,
            Permission::Ask => {
                let request = PermissionRequest::Hook {
                    tool_call_id: tool.id.clone(),
                    tool_name: tool.name.clone(),
                    tool_args: (&tool.args).into(),
                    hook_message: decided.reason.clone(),
                    extension_name: decided.by.clone(),
                };
                let decision = session.request_permission(&request).await;
                self.stage.write(format!("agent: permission -> {}", text::json(&decision)));
                decision.is_approved()
            }
        }
    }

    /// A sub-agent that answers at once, and once more if it is told to go on.
    async fn subagent(&self, session: &Session, step: Subagent) {
        let name = &step.name;
        let call = SubagentCall {
            id: self.id(step.id, "subagent"),
            name: step.name.clone(),
            kind: step.kind.unwrap_or_default(),
        };
        for context in session.subagent_started(&call).await {
            self.stage.write(format!(
                "subagent {name} <- context {}: {}",
                context.extension, context.text
            ));
        }
        if let Some(failure) = &step.failure {
            session.subagent_failed(&call, failure);
            return;
        }
        let stop_reason = step.stop_reason.as_deref().unwrap_or("end_turn");
        let mut response = step.response;
        for _ in 0..2 {
            match session.subagent_stopped(&call, stop_reason, &response).await {
                SubagentEnd::Done { response } => {
                    self.stage.write(format!("subagent {name} -> {response}"));
                    return;
                }
                SubagentEnd::Continue { reason } => {
                    self.stage.write(format!("subagent {name} <- {reason}"));
                    response.push_str(" (continued)");
                }
            }
        }
        self.stage.write(format!("subagent {name}: told to go on twice"));
    }
}

#[async_trait]
impl Agent for ScriptedAgent {
    fn built_in_tools(&self) -> Vec<String> {
        self.built_in_tools.clone()
    }

    async fn prompt(
        &self,
        turn: Arc<Turn>,
        prompt: Arc<AgentPrompt>,
    ) -> Result<Answer, AgentError> {
        let start = self.stage.seen();
        self.write_prompt("<-", &prompt);
        let Some(steps) = self.stage.next_turn() else {
            turn.message("ok");
            return Ok(StopReason::end_turn().into());
        };
        let _working = Working::begin(&self.working);
        let mut cancels = self.cancels.subscribe();
        for step in steps {
            let ended = tokio::select! {
                biased;
                _ = cancels.changed() => {
                    self.stage.write("agent: stops, cancelled");
                    Some(Ok(StopReason::cancelled().into()))
                }
                ended = self.perform(&turn, start, step) => ended,
            };
            if let Some(ended) = ended {
                return ended;
            }
        }
        Ok(StopReason::end_turn().into())
    }

    fn can_steer(&self) -> bool {
        self.steers
    }

    fn cancel(&self) {
        self.stage.write("agent <- cancel");
        self.cancels.send_modify(|count| *count += 1);
    }

    async fn steer(&self, prompt: &AgentPrompt) -> bool {
        let working = self.working.load(Ordering::Relaxed);
        if working {
            self.write_prompt("<- steering", prompt);
        }
        working
    }

    fn models(&self) -> Vec<Value> {
        self.models.clone()
    }

    async fn set_model(&self, model: &str, options: &Value) -> Result<(), String> {
        if !self.models.iter().any(|known| known["id"] == model) {
            return Err(format!("the agent has no model \"{model}\""));
        }
        self.stage.write(format!("agent <- model {model} {}", text::json(options)));
        Ok(())
    }

    async fn set_mode(&self, mode: &str) -> Result<(), String> {
        self.stage.write(format!("agent <- mode {mode}"));
        Ok(())
    }
}

/// Says that there is a prompt to add to, as long as it lives.
struct Working<'a>(&'a AtomicBool);

impl<'a> Working<'a> {
    fn begin(working: &'a AtomicBool) -> Self {
        working.store(true, Ordering::Relaxed);
        Self(working)
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn describe(verdict: &Verdict) -> String {
    let Some(decided) = &verdict.decided else { return "proceed".to_owned() };
    let decision = match decided.permission {
        Permission::Allow => "allow",
        Permission::Ask => "ask",
        Permission::Deny => "deny",
    };
    let reason = decided.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{decision} by {}{reason}", decided.by)
}

/// Emits an event.
pub fn emit(session: &Session, step: Emit) {
    if step.ephemeral {
        session.emit_ephemeral(&step.emit, step.data);
    } else {
        session.emit(&step.emit, step.data);
    }
}

/// Makes a request that has no way of its own.
pub async fn ask_other(session: &Session, step: &OtherRequest) -> Option<Value> {
    match step.request {
        OtherKind::ExitPlanMode => session.ask_exit_plan_mode(&step.data).await,
        OtherKind::AutoModeSwitch => session.ask_auto_mode_switch(&step.data).await,
    }
}

/// Makes a call to its end.
pub async fn run_call(session: &Session, call: &Call) -> Called {
    let mut tool_call = ToolCall::new(&call.call, call.args.clone());
    tool_call.id = call.id.clone();
    tool_call.agent_id = call.agent.clone();
    tool_call.permission = match call.permission {
        Asking::Granted => PermissionCheck::Granted,
        Asking::Ask => PermissionCheck::Ask,
    };
    session.call_tool(tool_call).await
}

/// Makes calls side by side, begun in their order; the outcomes are in their order too.
pub async fn run_calls(session: &Session, calls: &[Call]) -> Vec<Called> {
    let mut running: Vec<Pin<Box<_>>> =
        calls.iter().map(|call| Box::pin(run_call(session, call))).collect();
    let mut outcomes: Vec<Option<Called>> = calls.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (call, outcome) in running.iter_mut().zip(&mut outcomes) {
            if outcome.is_none()
                && let Poll::Ready(ready) = call.as_mut().poll(context)
            {
                *outcome = Some(ready);
            }
        }
        if outcomes.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outcomes.into_iter().flatten().collect()
}
