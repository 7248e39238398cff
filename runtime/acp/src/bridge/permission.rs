//! `session/request_permission`: extensions decide first, then what the person has permitted, then the person.

use agent_client_protocol_schema::v1::PermissionOptionKind;
use serde_json::Value;
use serde_json::json;
use tenon_host::Decided;
use tenon_host::Permission;
use tenon_host::Session;
use tenon_host::front::Context;
use tenon_host::front::Decision;
use tenon_host::session::AgentTool;
use tenon_host::session::Verdict;
use tenon_protocol::permission::AskedBy;
use tenon_protocol::permission::DecisionKind;
use tenon_protocol::permission::PermissionRequest;

use super::Bridge;
use super::tool_watch::ToolWatch;
use super::tool_watch::tell_later;
use crate::permission_options;
use crate::rpc::RpcError;
use crate::vocabulary;
use crate::vocabulary::Recognised;

/// What an answer lets the agent do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answer {
    Once,
    Always,
    No,
}

impl Bridge {
    /// The agent asks whether it may do something.
    pub(super) async fn permission_requested(&self, params: Value) -> Result<Value, RpcError> {
        let Some(session) = self.session() else { return Err(RpcError::closed()) };
        let Some(watch) = self.asked_about(&session, &params["toolCall"]) else {
            let message = "`toolCall.toolCallId` is missing, or the turn has too many tool calls";
            return Err(RpcError::invalid_params(message));
        };
        let turn = self.state().turn.clone();
        if let Some(turn) = turn {
            // What was said before is said.
            turn.finish();
        }
        // What nobody wants any more is not permitted, however quickly that could be decided. Some agents ask
        // nothing more until they have an answer, also when the turn is cancelled.
        Ok(tokio::select! {
            biased;
            () = self.unwanted() => cancelled(),
            answer = watch.answer(self.decide(&session, &watch, &params)) => answer,
        })
    }

    /// Waits until nobody wants any more what the agent is doing: its turn is cancelled, or it did not stop when
    /// one was. What it does outside of turns is nobody's to cancel.
    pub(super) async fn unwanted(&self) {
        let (deaf, turn) = {
            let state = self.state();
            (state.deaf, state.turn.clone())
        };
        match turn {
            _ if deaf => {}
            Some(turn) => turn.cancelled().await,
            None => std::future::pending().await,
        }
    }

    async fn decide(&self, session: &Session, watch: &ToolWatch, params: &Value) -> Value {
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let tools = match self.recognise(session, watch) {
            // It is asked for when the call comes: only then are its arguments known for sure.
            Recognised::Ours { tool, args } => {
                // A tool that has gone is refused when it is called.
                let id = params["toolCall"]["toolCallId"].as_str();
                if let (Some(endpoint), Some(id)) = (self.endpoint.get(), id) {
                    endpoint.calls().announce(&tool, args.as_ref(), id);
                }
                return choose(options, Answer::Once);
            }
            Recognised::Foreign(tools) => tools,
        };
        let before = watch.before(session, tools).await;
        let strictest = strictest(before);
        let decided = strictest.and_then(|(tool, verdict)| Some((tool, verdict.decided.as_ref()?)));
        match decided {
            Some((tool, Decided { permission: Permission::Deny, by, reason })) => {
                let because = reason.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
                watch.deny(session, format!("Denied by {by}{because}")).await;
                let text = format!("{} was denied{because}", tool.name);
                tell_later(session, Context { extension: by.clone(), text: text.clone() });
                let data = json!({
                    "infoType": "denied",
                    "message": text,
                    "extensionId": by,
                    "toolCallId": tool.id,
                });
                session.emit("session.info", data);
                choose(options, Answer::No)
            }
            Some((_, Decided { permission: Permission::Allow, .. })) => {
                choose(options, Answer::Once)
            }
            asked => {
                let title = watch.with_call(|call| call["title"].as_str().map(str::to_owned));
                let hook = asked.map(|(_, decided)| decided);
                self.ask(session, watch, before, title.as_deref(), hook, params).await
            }
        }
    }

    /// Asks whoever may decide; about every file, if it is about several.
    async fn ask(
        &self,
        session: &Session,
        watch: &ToolWatch,
        before: &[(AgentTool, Verdict)],
        title: Option<&str>,
        hook: Option<&Decided>,
        params: &Value,
    ) -> Value {
        let options = params["options"].as_array().map(Vec::as_slice).unwrap_or_default();
        let Some((tool, _)) = before.first() else { return choose(options, Answer::No) };
        let mut request = vocabulary::permission_request(tool, title);
        if before.len() > 1 {
            vocabulary::ask_about_all(&mut request, before.iter().map(|(tool, _)| tool));
        }
        if let Some(hook) = hook {
            let (hook_message, extension_name) = (hook.reason.clone(), hook.by.clone());
            request.asked_by = Some(AskedBy { hook_message, extension_name });
        }
        request.acp = Some(self.with_our_id(params.clone()).into());
        let decision = session.request_permission(&PermissionRequest::Agent(request)).await;
        if !decision.is_approved() {
            let said = decision.feedback.as_deref().map(|it| format!(": {it}")).unwrap_or_default();
            watch.deny(session, format!("Not permitted{said}")).await;
            if !said.is_empty() {
                let text = format!("{} was not permitted{said}", tool.name);
                tell_later(session, Context { extension: "the person".to_owned(), text });
            }
        }
        answer(options, &decision)
    }
}

/// The strictest of several verdicts.
fn strictest(before: &[(AgentTool, Verdict)]) -> Option<&(AgentTool, Verdict)> {
    let rank = |(_, verdict): &&(AgentTool, Verdict)| match &verdict.decided {
        Some(Decided { permission: Permission::Deny, .. }) => 3,
        Some(Decided { permission: Permission::Ask, .. }) => 2,
        // Nobody has decided; an extension that allows one file has not allowed the other.
        None => 1,
        Some(Decided { permission: Permission::Allow, .. }) => 0,
    };
    // The first of the strictest.
    before.iter().rev().max_by_key(rank)
}

/// A decision as an answer to the agent.
fn answer(options: &[Value], decision: &Decision) -> Value {
    // A client in front has chosen one of the agent's own options.
    if let Some(outcome) = decision.rest.get("acpOutcome")
        && permits(options, outcome) == decision.is_approved()
    {
        return json!({ "outcome": outcome });
    }
    match &decision.kind {
        DecisionKind::Cancelled => cancelled(),
        // Whoever said so is asked again, and says so again; an agent that does not ask any more is guarded by
        // no hook.
        DecisionKind::ApproveOnce
        | DecisionKind::Approved
        | DecisionKind::ApproveForSession
        | DecisionKind::ApprovedForSession => choose(options, Answer::Once),
        kind if kind.is_approved() => choose(options, Answer::Always),
        _ => choose(options, Answer::No),
    }
}

/// Whether a chosen option lets the agent do it.
fn permits(options: &[Value], outcome: &Value) -> bool {
    let kind = permission_options::chosen(options, outcome).and_then(permission_options::kind);
    matches!(kind, Some(PermissionOptionKind::AllowOnce | PermissionOptionKind::AllowAlways))
}

/// The option that says it.
fn choose(options: &[Value], answer: Answer) -> Value {
    let kinds = match answer {
        Answer::Once => [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways],
        Answer::Always => [PermissionOptionKind::AllowAlways, PermissionOptionKind::AllowOnce],
        Answer::No => [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways],
    };
    match permission_options::first_of(options, kinds) {
        Some(option) => {
            json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } })
        }
        None => cancelled(),
    }
}

fn cancelled() -> Value {
    json!({ "outcome": { "outcome": "cancelled" } })
}

#[cfg(test)]
mod tests {
    use super::super::tool_watch::stage::Stage;
    use super::super::tool_watch::stage::bash;
    use super::*;
    use crate::agent::AgentSession;

    #[tokio::test]
    async fn an_agent_that_does_not_stop_is_permitted_nothing() {
        let stage = Stage::new();
        let ask = |id: &str| {
            let mut call = bash("ls");
            call["toolCallId"] = id.into();
            let params = json!({ "sessionId": "s", "toolCall": call, "options": options() });
            stage.bridge.request("session/request_permission", params)
        };
        assert_eq!(chosen(&ask("1").await.unwrap()), "yes");
        stage.bridge.state().deaf = true;
        for id in ["1", "2"] {
            assert_eq!(chosen(&ask(id).await.unwrap()), "cancelled");
        }
    }

    fn options() -> Vec<Value> {
        vec![
            json!({ "optionId": "always", "kind": "allow_always" }),
            json!({ "optionId": "no", "kind": "reject_once" }),
            json!({ "optionId": "yes", "kind": "allow_once" }),
        ]
    }

    fn chosen(answer: &Value) -> &str {
        answer["outcome"]["optionId"].as_str().unwrap_or("cancelled")
    }

    #[test]
    fn an_option_is_chosen_by_its_kind() {
        let options = options();
        assert_eq!(chosen(&answer(&options, &Decision::approve())), "yes");
        assert_eq!(
            chosen(&answer(&options, &Decision::new(DecisionKind::ApproveForSession))),
            "yes"
        );
        assert_eq!(
            chosen(&answer(&options, &Decision::new(DecisionKind::ApprovePermanently))),
            "always"
        );
        assert_eq!(chosen(&answer(&options, &Decision::reject(None))), "no");
        assert_eq!(chosen(&answer(&options, &Decision::new(DecisionKind::Cancelled))), "cancelled");
    }

    #[test]
    fn without_an_option_to_refuse_the_question_is_cancelled() {
        let options = [json!({ "optionId": "yes", "kind": "allow_once" })];
        assert_eq!(chosen(&choose(&options, Answer::No)), "cancelled");
        assert_eq!(chosen(&choose(&options, Answer::Always)), "yes");
    }

    #[test]
    fn one_denied_file_denies_the_patch() {
        let verdict = |permission: Option<Permission>| {
            let decided = permission.map(|permission| Decided {
                permission,
                by: "user:x".to_owned(),
                reason: None,
            });
            (AgentTool::default(), Verdict { decided, contexts: Vec::new() })
        };
        let allowed = Some(Permission::Allow);
        let before = [verdict(allowed), verdict(Some(Permission::Deny)), verdict(None)];
        let (_, strict) = strictest(&before).unwrap();
        assert_eq!(strict.decided.as_ref().unwrap().permission, Permission::Deny);
        let (_, open) = strictest(&[verdict(allowed), verdict(None)]).unwrap().clone();
        assert!(open.decided.is_none());
    }
}
