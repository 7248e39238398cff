//! Questions to the person: answered by an extension's handler, by the front, or by whoever saw the event.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::json;

use super::Session;
use super::pending::Kind;
use crate::front::Elicitation;
use crate::front::ElicitationAnswer;
use crate::front::Question;
use crate::front::UserAnswer;

impl Session {
    /// Asks a question; `None` if nobody could be asked.
    pub async fn ask_user(&self, question: &Question) -> Option<UserAnswer> {
        let request = serde_json::to_value(question).ok()?;
        let ask = Ask {
            kind: Kind::UserInput,
            handler: "onUserInputRequest",
            event: "user_input",
            asker: None,
        };
        self.ask(&ask, request, async |session| {
            session.0.options.front.as_ref()?.ask_user(question).await
        })
        .await
    }

    /// Shows a form; `None` if nobody could be asked. The handler of the extension that asks is left out.
    pub async fn elicit(
        &self,
        form: &Elicitation,
        asker: Option<&str>,
    ) -> Option<ElicitationAnswer> {
        let request = serde_json::to_value(form).ok()?;
        let ask = Ask {
            kind: Kind::Elicitation,
            handler: "onElicitationRequest",
            event: "elicitation",
            asker,
        };
        self.ask(&ask, request, async |session| {
            let front = session.0.options.front.as_ref()?;
            if !front.capabilities().elicitation {
                return None;
            }
            front.elicit(form).await
        })
        .await
    }

    /// Asks whether the agent may leave plan mode; the request and the answer are the contract's. Part of the contract that no
    /// agent uses yet.
    pub async fn ask_exit_plan_mode(&self, request: &Value) -> Option<Value> {
        self.ask_other(Kind::ExitPlanMode, "onExitPlanModeRequest", "exit_plan_mode", request).await
    }

    /// Asks whether to go on with another model; the request and the answer are the contract's. Part of the contract that no
    /// agent uses yet.
    pub async fn ask_auto_mode_switch(&self, request: &Value) -> Option<Value> {
        let kind = Kind::AutoModeSwitch;
        self.ask_other(kind, "onAutoModeSwitchRequest", "auto_mode_switch", request).await
    }

    async fn ask_other(
        &self,
        kind: Kind,
        handler: &'static str,
        event: &'static str,
        request: &Value,
    ) -> Option<Value> {
        let ask = Ask { kind, handler, event, asker: None };
        self.ask(&ask, request.clone(), async |session| {
            let front = session.0.options.front.as_ref()?;
            front.ask_other(handler, request).await
        })
        .await
    }

    /// Announces a question, asks everybody in turn, and announces the answer.
    async fn ask<Answer: Serialize + DeserializeOwned>(
        &self,
        ask: &Ask<'_>,
        request: Value,
        front: impl AsyncFnOnce(&Self) -> Option<Answer>,
    ) -> Option<Answer> {
        let over = format!("{}.completed", ask.event);
        let mut waiting = self.0.pending.open(ask.kind, &self.0.bus, &over);
        let mut requested = json!({ "requestId": waiting.id });
        extend(&mut requested, &request);
        self.emit_ephemeral(&format!("{}.requested", ask.event), requested);
        let mut completed = json!({ "requestId": waiting.id });
        let answer = tokio::select! {
            answer = waiting.answered() => serde_json::from_value(answer).ok(),
            answer = self.ask_in_turn(ask, &request, front) => answer,
        };
        if let Some(answer) = answer.as_ref().and_then(|answer| serde_json::to_value(answer).ok()) {
            extend(&mut completed, &answer);
        }
        waiting.complete(completed);
        answer
    }

    async fn ask_in_turn<Answer: DeserializeOwned>(
        &self,
        ask: &Ask<'_>,
        request: &Value,
        front: impl AsyncFnOnce(&Self) -> Option<Answer>,
    ) -> Option<Answer> {
        let mut last = None;
        while let Some(target) = self.0.extensions.next_with_handler(last.as_ref(), ask.handler) {
            if ask.asker != Some(&*target.id)
                && let Some(answer) = self.ask_handler(&target, ask.handler, request).await
            {
                return Some(answer);
            }
            last = Some(target.peer.key.clone());
        }
        front(self).await
    }
}

/// A kind of question.
struct Ask<'a> {
    kind: Kind,
    /// The handler that extensions have for it.
    handler: &'static str,
    /// The first part of its events' names.
    event: &'static str,
    /// The extension that asks.
    asker: Option<&'a str>,
}

/// Adds the fields of one object to another; an answer that is no object is its field `response`.
fn extend(object: &mut Value, more: &Value) {
    match (object.as_object_mut(), more) {
        (Some(object), Value::Object(more)) => object.extend(more.clone()),
        (Some(object), other) => drop(object.insert("response".to_owned(), other.clone())),
        (None, _) => {}
    }
}
