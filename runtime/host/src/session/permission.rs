//! May this be done? Extensions' handlers are asked first, then the person.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::json;
use tenon_protocol::message::CallKind;
use tenon_protocol::message::LogLevel;
use tenon_protocol::permission::PermissionRequest;

use super::Session;
use super::pending::Kind;
use crate::extensions::HandlerTarget;
use crate::front::Decision;

impl Session {
    /// Asks whether something may be done.
    pub async fn request_permission(&self, request: &PermissionRequest) -> Decision {
        self.permission(request).await.0
    }

    /// The same, with the extension that decided, if one did.
    pub(super) async fn permission(
        &self,
        request: &PermissionRequest,
    ) -> (Decision, Option<String>) {
        let mut waiting =
            self.0.pending.open(Kind::Permission, &self.0.bus, "permission.completed");
        let id = waiting.id.clone();
        self.emit("permission.requested", json!({ "requestId": id, "permissionRequest": request }));
        let (decision, by) = tokio::select! {
            answer = waiting.answered() => {
                let fits = serde_json::from_value(answer);
                (fits.unwrap_or_else(|_| Decision::nobody_to_ask()), None)
            }
            decided = self.decide(request) => decided,
        };
        let mut data = json!({ "requestId": id, "result": decision });
        if let Some(call) = request.tool_call_id() {
            data["toolCallId"] = call.into();
        }
        if let Some(by) = &by {
            data["decidedBy"] = by.as_str().into();
        }
        waiting.complete(data);
        (decision, by)
    }

    /// A rejection by any extension holds; else an approval by any; else the person decides.
    async fn decide(&self, request: &PermissionRequest) -> (Decision, Option<String>) {
        let mut approval = None;
        let mut last = None;
        let handler = "onPermissionRequest";
        while let Some(target) = self.0.extensions.next_with_handler(last.as_ref(), handler) {
            if let Some(decision) = self.ask_handler::<Decision>(&target, handler, request).await
                && !decision.kind.leaves_it_to_others()
            {
                if !decision.is_approved() {
                    return (decision, Some(target.id));
                }
                approval.get_or_insert((decision, Some(target.id)));
            }
            last = Some(target.peer.key.clone());
        }
        match approval {
            Some(approval) => approval,
            None => (self.ask_person_for_permission(request).await, None),
        }
    }

    /// Asks the person, and nobody else.
    pub(super) async fn ask_person_for_permission(&self, request: &PermissionRequest) -> Decision {
        let asked = match &self.0.options.front {
            Some(front) => front.request_permission(request).await,
            None => None,
        };
        asked.unwrap_or_else(Decision::nobody_to_ask)
    }

    /// Asks one extension's handler; a failure, or an answer that is none, is reported and counts as no
    /// answer.
    pub(super) async fn ask_handler<Answer: DeserializeOwned>(
        &self,
        target: &HandlerTarget<'_>,
        handler: &str,
        request: &impl Serialize,
    ) -> Option<Answer> {
        let HandlerTarget { peer, id, deadline } = target;
        let payload = json!({
            "handler": handler,
            "request": request,
            "invocation": { "sessionId": self.id() },
        });
        let call = self.call(peer, CallKind::Handler, Some(*deadline), payload.to_string());
        let why = match call.await {
            Ok(Value::Null) => return None,
            Ok(answer) => match serde_json::from_value(answer.clone()) {
                Ok(answer) => return Some(answer),
                Err(_) => {
                    format!("it answered {answer}, which is not one of the answers it can give")
                }
            },
            Err(failure) => failure.with_place(),
        };
        let message = format!("{handler} of {id} failed: {why}; it was skipped");
        self.0.extensions.note(&peer.key, LogLevel::Error, &message);
        let data =
            json!({ "warningType": "handler_failed", "message": message, "extensionId": id });
        self.emit("session.warning", data);
        None
    }
}
