//! A front that answers what the script says, and otherwise nothing.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use tenon_host::front::Decision;
use tenon_host::front::Elicitation;
use tenon_host::front::ElicitationAnswer;
use tenon_host::front::Front;
use tenon_host::front::FrontCapabilities;
use tenon_host::front::OpenCanvas;
use tenon_host::front::Question;
use tenon_host::front::UserAnswer;
use tenon_protocol::permission::PermissionRequest;

use crate::script::Header;
use crate::script::Reply;
use crate::stage::Stage;
use crate::text;

/// See the module.
pub struct ScriptedFront {
    stage: Arc<Stage>,
    capabilities: FrontCapabilities,
}

impl ScriptedFront {
    /// The front that a header describes, if it wants one.
    pub fn new(header: &Header, stage: Arc<Stage>) -> Option<Self> {
        header.front.present().map(|setting| Self {
            stage,
            capabilities: FrontCapabilities {
                elicitation: setting.elicitation,
                canvases: setting.canvases,
            },
        })
    }

    async fn answer<T: Serialize>(
        &self,
        kind: &str,
        question: &impl Serialize,
        pick: impl Fn(&Reply) -> Option<T>,
    ) -> Option<T> {
        self.stage.write(format!("front <- {kind} {}", text::json(question)));
        let answer = self.stage.next_answer(pick).await;
        self.stage.write(match &answer {
            Some(answer) => format!("front -> {}", text::json(answer)),
            None => "front -> nothing".to_owned(),
        });
        answer
    }
}

#[async_trait]
impl Front for ScriptedFront {
    fn capabilities(&self) -> FrontCapabilities {
        self.capabilities
    }

    async fn request_permission(&self, request: &PermissionRequest) -> Option<Decision> {
        let pick = |reply: &Reply| match reply {
            Reply::Permission(decision) => Some(decision.clone()),
            _ => None,
        };
        self.answer("permission", request, pick).await
    }

    async fn elicit(&self, request: &Elicitation) -> Option<ElicitationAnswer> {
        let pick = |reply: &Reply| match reply {
            Reply::Elicit(answer) => Some(answer.clone()),
            _ => None,
        };
        self.answer("elicit", request, pick).await
    }

    async fn ask_user(&self, question: &Question) -> Option<UserAnswer> {
        let pick = |reply: &Reply| match reply {
            Reply::Ask(answer) => Some(answer.clone()),
            _ => None,
        };
        self.answer("ask", question, pick).await
    }

    async fn ask_other(&self, handler: &str, request: &Value) -> Option<Value> {
        let pick = |reply: &Reply| match reply {
            Reply::Other(answer) => Some(answer.clone()),
            _ => None,
        };
        self.answer(handler, request, pick).await
    }

    async fn show_canvas(&self, canvas: &OpenCanvas) {
        self.stage.write(format!("front <- canvas {}", text::json(canvas)));
    }

    async fn close_canvas(&self, instance: &str) {
        self.stage.write(format!("front <- canvas closed {instance}"));
    }
}
