//! The person at the terminal, as the session's [`Front`].

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use tenon_host::front::Decision;
use tenon_host::front::Elicitation;
use tenon_host::front::ElicitationAnswer;
use tenon_host::front::Front;
use tenon_host::front::FrontCapabilities;
use tenon_host::front::OpenCanvas;
use tenon_host::front::Question;
use tenon_host::front::UserAnswer;
use tenon_protocol::permission::PermissionRequest;
use tenon_protocol::permission::Subject;
use tokio::sync::mpsc;
use tokio::sync::oneshot;

use super::dialog::Permit;
use super::dialog::Request;
use super::keys::Keys;
use super::look::Look;
use super::screen;
use crate::sanitise::one_line;

/// The most questions that wait for the person; whoever asks more waits to ask.
const MAX_WAITING: usize = 64;

/// Asks the person at the terminal. One front is for one session: what is allowed for the session is
/// remembered in it.
pub struct TerminalFront {
    /// Where questions go; none if nobody is there.
    asks: Option<mpsc::Sender<Request>>,
    /// What is allowed for the session.
    allowed: Mutex<HashSet<Subject>>,
}

impl TerminalFront {
    /// A front that takes over the terminal whenever it asks; where there is none, nobody is asked. Must be
    /// made inside a tokio runtime.
    pub fn plain() -> Arc<dyn Front> {
        if !screen::is_interactive() {
            return Arc::new(Self { asks: None, allowed: Mutex::default() });
        }
        let (asks, mut waiting) = mpsc::channel::<Request>(MAX_WAITING);
        tokio::spawn(async move {
            while let Some(request) = waiting.recv().await {
                // A terminal that cannot be read answers nothing; the question is dropped.
                let Some(mut keys) = Keys::open_anew() else { continue };
                request.ask(&mut keys).await;
            }
        });
        Self::through(asks)
    }

    /// A front whose questions somebody else puts to the person, one after the other.
    pub fn through(asks: mpsc::Sender<Request>) -> Arc<dyn Front> {
        Arc::new(Self { asks: Some(asks), allowed: Mutex::default() })
    }

    /// Questions on their way to whoever asks them.
    pub fn channel() -> (mpsc::Sender<Request>, mpsc::Receiver<Request>) {
        mpsc::channel(MAX_WAITING)
    }

    /// Asks; none if nobody answers.
    async fn ask<Answer>(
        &self,
        request: impl FnOnce(oneshot::Sender<Answer>) -> Request,
    ) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        self.asks.as_ref()?.send(request(reply)).await.ok()?;
        answer.await.ok()
    }

    fn allowed(&self) -> MutexGuard<'_, HashSet<Subject>> {
        self.allowed.lock()
    }
}

#[async_trait]
impl Front for TerminalFront {
    fn capabilities(&self) -> FrontCapabilities {
        let somebody = self.asks.is_some();
        FrontCapabilities { elicitation: somebody, canvases: somebody }
    }

    async fn request_permission(&self, request: &PermissionRequest) -> Option<Decision> {
        let subject = request.subject();
        if subject.as_ref().is_some_and(|subject| self.allowed().contains(subject)) {
            return Some(Decision::approve());
        }
        let permit = self.ask(|reply| Request::Permission(request.clone(), reply)).await?;
        Some(match permit {
            Permit::Once => Decision::approve(),
            // It is remembered here, and the agent is told that it may do it this time: one that was told more
            // would not ask again, and extensions that guard it could not stop it any more.
            Permit::Always => {
                self.allowed().extend(subject);
                Decision::approve()
            }
            Permit::No(why) => Decision::reject(why),
        })
    }

    async fn elicit(&self, form: &Elicitation) -> Option<ElicitationAnswer> {
        self.ask(|reply| Request::Form(form.clone(), reply)).await
    }

    async fn ask_user(&self, question: &Question) -> Option<UserAnswer> {
        self.ask(|reply| Request::Question(question.clone(), reply)).await
    }

    async fn show_canvas(&self, canvas: &OpenCanvas) {
        if let Some(asks) = &self.asks {
            // Whoever shows it may have ended.
            let _ = asks.send(Request::Line(link(canvas))).await;
        }
    }
}

/// Where a canvas can be looked at.
fn link(canvas: &OpenCanvas) -> String {
    let look = Look::new(screen::colours());
    let title = canvas.title.as_deref().unwrap_or(&canvas.canvas_id);
    let (title, whose) = (one_line(title, 100), one_line(&canvas.extension_id, 80));
    let at = match &canvas.url {
        Some(url) => format!("{}{}{:#}", look.pointed, one_line(url, 1000), look.pointed),
        None => "it has no page".to_owned(),
    };
    format!("{} {title} {} {whose}: {at}", look.says, look.between)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tenon_protocol::permission::DecisionKind;

    use super::*;

    /// A front whose questions are answered by a list, in order.
    fn answered(permits: Vec<Permit>) -> (Arc<dyn Front>, tokio::task::JoinHandle<usize>) {
        let (asks, mut waiting) = TerminalFront::channel();
        let answering = tokio::spawn(async move {
            let mut asked = 0;
            let mut permits = permits.into_iter();
            while let Some(Request::Permission(_, reply)) = waiting.recv().await {
                asked += 1;
                if let Some(permit) = permits.next() {
                    reply.send(permit).unwrap();
                }
            }
            asked
        });
        (TerminalFront::through(asks), answering)
    }

    fn unknown() -> PermissionRequest {
        PermissionRequest::Other(json!({ "kind": "new-thing" }))
    }

    #[tokio::test]
    async fn always_is_remembered_for_what_is_alike() {
        let (front, answering) = answered(vec![Permit::Always, Permit::Once]);
        let tool = |name: &str| PermissionRequest::CustomTool {
            tool_call_id: "c1".to_owned(),
            tool_name: name.to_owned(),
            tool_description: String::new(),
            args: json!({}).into(),
        };
        let kind = async |request| front.request_permission(&request).await.unwrap().kind;
        for name in ["a", "a", "b"] {
            // Never more than once: the agent is to go on asking, so that extensions can go on guarding.
            assert_eq!(kind(tool(name)).await, DecisionKind::ApproveOnce);
        }
        drop(front);
        assert_eq!(answering.await.unwrap(), 2);
    }

    #[tokio::test]
    async fn a_refusal_carries_its_reason() {
        let (front, _answering) = answered(vec![Permit::No(Some("not now".to_owned()))]);
        let decision = front.request_permission(&unknown()).await.unwrap();
        assert!(!decision.is_approved());
        assert_eq!(decision.feedback.as_deref(), Some("not now"));
    }

    #[tokio::test]
    async fn a_question_that_is_dropped_was_asked_of_nobody() {
        let (front, _answering) = answered(Vec::new());
        assert!(front.request_permission(&unknown()).await.is_none());
        let nobody = TerminalFront { asks: None, allowed: Mutex::default() };
        assert!(nobody.request_permission(&unknown()).await.is_none());
        assert_eq!(nobody.capabilities(), FrontCapabilities::default());
    }

    #[test]
    fn a_canvas_is_shown_as_a_link() {
        let canvas = OpenCanvas {
            instance_id: "1".to_owned(),
            extension_id: "project:board".to_owned(),
            extension_name: "board".to_owned(),
            canvas_id: "main".to_owned(),
            title: Some("Board\x1b[2J".to_owned()),
            status: None,
            url: Some("http://127.0.0.1:1234/".to_owned()),
            input: None,
        };
        let shown = anstream::adapter::strip_str(&link(&canvas)).to_string();
        assert!(shown.contains(" Board "), "{shown}");
        assert!(shown.ends_with(" project:board: http://127.0.0.1:1234/"), "{shown}");
    }
}
