//! The client as the front of one session: it is asked and told what the session has to ask and tell, and gets
//! what the agent sends.

use std::collections::HashSet;
use std::sync::OnceLock;

use async_trait::async_trait;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use serde_json::Value;
use serde_json::json;
use tenon_host::Session;
use tenon_host::front::Decision;
use tenon_host::front::Elicitation;
use tenon_host::front::ElicitationAnswer;
use tenon_host::front::Front;
use tenon_host::front::FrontCapabilities;
use tenon_host::front::OpenCanvas;
use tenon_host::front::Question;
use tenon_host::front::UserAnswer;
use tenon_host::session::WeakSession;
use tenon_protocol::permission::AgentRequest;
use tenon_protocol::permission::DecisionKind;
use tenon_protocol::permission::PermissionRequest;
use tenon_protocol::permission::Subject;
use tokio::sync::watch;

use super::commands;
use super::commands::Commands;
use super::commands::Own;
use super::ids;
use super::messages::Kind;
use super::messages::Visible;
use super::questions;
use super::questions::Abilities;
use super::questions::Permission;
use super::update_sender::UpdateSender;
use crate::agent::Outer;
use crate::bridge::HISTORY;
use crate::rpc::Connection;
use crate::rpc::RpcError;

/// How much of the session the client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It waits for the session to be opened, and cannot answer anything about it.
    Opening,
    /// It is about to hear that the session is open.
    Opened,
    /// It has heard.
    Known,
    /// It has closed it.
    Closed,
}

/// The client, for one session.
pub struct ClientFront {
    client: Connection,
    updates: UpdateSender,
    abilities: Abilities,
    /// Whether the client is told what the agent says while the session is opened, which may be all that was said
    /// before.
    replay: bool,
    phase: watch::Sender<Phase>,
    session: OnceLock<WeakSession>,
    /// Held while a list is made and sent, so that the last one sent is the newest.
    commands: tokio::sync::Mutex<Commands>,
    /// What the person has permitted for the session.
    permitted: Mutex<HashSet<Subject>>,
    /// The pages that were shown: which instance of a canvas, and where it is.
    shown: Mutex<HashSet<(String, String)>>,
}

impl ClientFront {
    /// The front of a session that is being opened. `known`: the client has a name for it already; `replay`: it
    /// is told what the agent says meanwhile, which may be all that was said before.
    pub fn new(
        client: Connection,
        id: String,
        abilities: Abilities,
        known: bool,
        replay: bool,
    ) -> Self {
        Self {
            updates: UpdateSender::new(client.clone(), id, !known),
            client,
            abilities,
            replay,
            phase: watch::Sender::new(Phase::Opening),
            session: OnceLock::new(),
            commands: tokio::sync::Mutex::default(),
            permitted: Mutex::default(),
            shown: Mutex::default(),
        }
    }

    /// What the client calls the session.
    pub fn id(&self) -> &str {
        self.updates.id()
    }

    /// The session is open, and the client is about to hear of it.
    pub async fn opened(&self, session: &Session) {
        // A front belongs to one session; a second does not get it.
        let _ = self.session.set(session.downgrade());
        self.advance(Phase::Opened);
        self.commands_changed().await;
    }

    /// The client has been told that the session is open.
    pub async fn known(&self) {
        self.updates.release().await;
        self.advance(Phase::Known);
    }

    /// The client does not want to hear of the session any more.
    pub fn closed(&self) {
        self.advance(Phase::Closed);
    }

    fn advance(&self, to: Phase) {
        self.phase.send_if_modified(|phase| {
            let further = *phase < to;
            *phase = to.max(*phase);
            further
        });
    }

    /// Whether the client can be asked. While the session is being opened it cannot: the opening would wait for
    /// an answer that waits for the opening. Who is patient waits until it is open.
    async fn can_be_asked(&self, patient: bool) -> bool {
        let mut phase = self.phase.subscribe();
        if *phase.borrow_and_update() == Phase::Opening && !patient {
            return false;
        }
        // The sender lives as long as we do.
        phase.wait_for(|phase| *phase >= Phase::Known).await.is_ok_and(|now| *now == Phase::Known)
    }

    /// Asks the client something about the session.
    async fn ask(&self, method: &str, mut params: Value) -> Result<Value, RpcError> {
        ids::set_session(&mut params, self.id());
        self.client.request(method, params).await
    }

    /// Shows a message.
    pub async fn show(&self, message: &Visible) {
        self.updates.say(message.as_update(self.abilities.notices)).await;
    }

    /// Tells the client which commands there are, if that has changed.
    pub async fn commands_changed(&self) {
        let mut commands = self.commands.lock().await;
        let Some(session) = self.session.get().and_then(WeakSession::upgrade) else { return };
        if let Some(update) = commands.update(&Own::of(&session)) {
            self.updates.say(update).await;
        }
    }

    /// Whether the agent has a command of exactly this name.
    pub async fn is_agents_command(&self, name: &str) -> bool {
        self.commands.lock().await.is_agents(name)
    }

    /// Asks for a permission in our own words. A call that only we know of is ended here, so that it does not look
    /// unfinished for ever.
    async fn ask_permission(&self, question: &Permission) -> Option<Value> {
        let asked = self.ask("session/request_permission", question.params.clone()).await;
        if let Some(call) = &question.own_call {
            let answer = asked.as_ref().ok();
            let approved = answer
                .is_some_and(|answer| questions::decision(&question.params, answer).is_approved());
            let status = if approved { "completed" } else { "failed" };
            let update = json!({
                "sessionUpdate": "tool_call_update",
                "toolCallId": call,
                "status": status,
            });
            self.updates.say(update).await;
        }
        asked.ok()
    }

    fn permitted(&self) -> MutexGuard<'_, HashSet<Subject>> {
        self.permitted.lock()
    }
}

#[async_trait]
impl Front for ClientFront {
    fn capabilities(&self) -> FrontCapabilities {
        FrontCapabilities { elicitation: self.abilities.forms, canvases: true }
    }

    async fn request_permission(&self, request: &PermissionRequest) -> Option<Decision> {
        // A review is asked for beside the opening; nobody waits for its answer.
        let patient = matches!(request, PermissionRequest::ExtensionReview { .. });
        if !self.can_be_asked(patient).await {
            return None;
        }
        // The agent's own question reaches the client as the agent asked it.
        if let PermissionRequest::Agent(AgentRequest { acp: Some(asked), .. }) = request {
            let asked = asked.value();
            let answer = self.ask("session/request_permission", asked.clone()).await.ok()?;
            return Some(questions::decision(asked, &answer));
        }
        let question = Permission::of(request);
        if question.subject.as_ref().is_some_and(|subject| self.permitted().contains(subject)) {
            return Some(Decision::approve());
        }
        let answer = self.ask_permission(&question).await?;
        let decision = questions::decision(&question.params, &answer);
        if decision.kind == DecisionKind::ApproveForSession
            && let Some(subject) = question.subject
        {
            self.permitted().insert(subject);
        }
        Some(decision)
    }

    async fn elicit(&self, form: &Elicitation) -> Option<ElicitationAnswer> {
        let params = questions::elicitation(form, self.abilities)?;
        if !self.can_be_asked(false).await {
            return None;
        }
        let answer = self.ask("elicitation/create", params).await.ok()?;
        Some(questions::elicited(&answer))
    }

    async fn ask_user(&self, question: &Question) -> Option<UserAnswer> {
        if self.abilities.forms {
            let form = questions::question_form(question);
            return questions::question_answer(&self.elicit(&form).await?);
        }
        let permission = questions::question_permission(question)?;
        if !self.can_be_asked(false).await {
            return None;
        }
        questions::chosen(question, &self.ask_permission(&permission).await?)
    }

    async fn show_canvas(&self, canvas: &OpenCanvas) {
        let Some(url) = &canvas.url else { return };
        let page = (canvas.instance_id.clone(), url.clone());
        let is_new = self.shown.lock().insert(page);
        if !is_new {
            return;
        }
        let title = canvas.title.as_ref().unwrap_or(&canvas.canvas_id).replace(['[', ']'], "");
        let status =
            canvas.status.as_ref().map(|status| format!(" ({status})")).unwrap_or_default();
        let text = format!("opened [{title}](<{url}>){status}");
        self.show(&Visible::new(Kind::Canvas, Some(&canvas.extension_id), text)).await;
    }

    async fn close_canvas(&self, instance: &str) {
        // Opened again, it is shown again.
        let mut shown = self.shown.lock();
        shown.retain(|(shown, _)| shown != instance);
    }
}

#[async_trait]
impl Outer for ClientFront {
    async fn update(&self, mut params: Value) {
        let kind = params["update"]["sessionUpdate"].as_str().unwrap_or_default();
        if kind == commands::UPDATE {
            self.commands.lock().await.agent_has(params["update"].take());
            self.commands_changed().await;
            return;
        }
        let opening = *self.phase.borrow() == Phase::Opening;
        if opening && !self.replay && HISTORY.contains(&kind) {
            return;
        }
        self.updates.pass(params).await;
    }

    async fn notification(&self, method: &str, params: Value) {
        self.updates.notify(method, params).await;
    }

    async fn request(&self, method: &str, params: Value) -> Option<Result<Value, RpcError>> {
        Some(self.ask(method, params).await)
    }
}

/// The client, for what the agent says of no session in particular.
pub struct Sessionless(pub Connection);

#[async_trait]
impl Outer for Sessionless {
    async fn update(&self, params: Value) {
        self.notification("session/update", params).await;
    }

    async fn notification(&self, method: &str, params: Value) {
        // A client that is gone misses nothing.
        let _ = self.0.notify(method, params).await;
    }

    async fn request(&self, method: &str, params: Value) -> Option<Result<Value, RpcError>> {
        Some(self.0.request(method, params).await)
    }
}

#[cfg(test)]
mod tests;
