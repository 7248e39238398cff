//! HTTP sessions of clients that begin with `initialize`: rmcp's own, with three things added. We know which
//! streams each has open; a change of the list of tools reaches a client that has no standing stream on the
//! answer to its call; and a request whose connection goes away is cancelled.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::task::Poll;

use futures::Stream;
use rmcp::model::CancelledNotification;
use rmcp::model::CancelledNotificationParam;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::model::ClientNotification;
use rmcp::model::ClientRequest;
use rmcp::model::RequestId;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::model::ServerNotification;
use rmcp::model::ToolListChangedNotification;
use rmcp::transport::streamable_http_server::SessionId;
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManagerError;
use rmcp::transport::streamable_http_server::session::local::SessionTransport;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::peers::Peers;
use super::peers::Room;
use super::peers::Standing;

/// The most HTTP sessions at a time. An agent has one; more are clients that came back without saying that
/// they had left, and the oldest of those go first.
pub(super) const MAX_SESSIONS: usize = 64;

/// A session could not be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    /// All are in use.
    #[error("{} MCP sessions are in use already", MAX_SESSIONS)]
    Full,
    /// rmcp says why.
    #[error(transparent)]
    Inner(#[from] LocalSessionManagerError),
}

/// Every session of an endpoint.
pub(super) struct Sessions {
    inner: Arc<LocalSessionManager>,
    peers: Arc<Peers>,
}

impl Sessions {
    pub(super) fn new(peers: Arc<Peers>) -> Arc<Self> {
        let mut inner = LocalSessionManager::default();
        // A person may think for longer than any time-out before the next prompt, and so may a tool; the
        // limit on sessions clears up instead.
        inner.session_config.keep_alive = None;
        // Without it no stream can be taken up again: who is gone is gone, and its request is cancelled.
        inner.session_config.sse_retry = None;
        Arc::new(Self { inner: Arc::new(inner), peers })
    }

    /// Ends every session.
    pub(super) async fn close_all(&self) {
        let ids: Vec<SessionId> = self.inner.sessions.read().await.keys().cloned().collect();
        for id in ids {
            // One that has ended by itself is closed too.
            let _ = self.close_session(&id).await;
        }
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = SessionTransport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        match self.peers.room(MAX_SESSIONS) {
            Room::Free => {}
            Room::After(idle) => self.close_session(&idle).await?,
            Room::None => return Err(SessionsError::Full),
        }
        let (id, transport) = self.inner.create_session().await?;
        self.peers.session_opened(&id);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.inner.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.inner.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.peers.session_closed(id);
        Ok(self.inner.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let (request, is_call) = match &message {
            ClientJsonRpcMessage::Request(request) => {
                let is_call = matches!(request.request, ClientRequest::CallToolRequest(_));
                (Some(request.id.clone()), is_call)
            }
            _ => (None, false),
        };
        let (number, changes) = self.peers.request_begun(id, is_call);
        // From here on: whoever drops it cancels the request.
        let open = OpenRequest {
            inner: self.inner.clone(),
            peers: self.peers.clone(),
            session: id.clone(),
            number,
            unanswered: request,
            runtime: Handle::current(),
        };
        let stream = Box::pin(self.inner.create_stream(id, message).await?);
        Ok(AnswerStream { stream, changes, open })
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        Ok(self.inner.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let stream = Box::pin(self.inner.create_standalone_stream(id).await?);
        Ok(StandingStream { stream, _standing: self.peers.standing(id) })
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        // Requests cannot be taken up again, so this is a standing stream.
        let stream = Box::pin(self.inner.resume(id, last_event_id).await?);
        Ok(StandingStream { stream, _standing: self.peers.standing(id) })
    }
}

/// Messages for a client.
type Messages = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

/// The answer to a request, and what is said before it.
struct AnswerStream {
    stream: Messages,
    /// The list of tools has changed, and there is no other stream to say so.
    changes: mpsc::Receiver<()>,
    open: OpenRequest,
}

impl Stream for AnswerStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Poll::Ready(Some(())) = self.changes.poll_recv(cx) {
            return Poll::Ready(Some(list_changed()));
        }
        let polled = self.stream.as_mut().poll_next(cx);
        let is_last = match &polled {
            Poll::Ready(Some(event)) => is_answer(event),
            Poll::Ready(None) => true,
            Poll::Pending => false,
        };
        if is_last {
            self.open.unanswered = None;
        }
        polled
    }
}

/// A stream that belongs to no request.
struct StandingStream {
    stream: Messages,
    _standing: Standing,
}

impl Stream for StandingStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.as_mut().poll_next(cx)
    }
}

/// A request that is being answered, as long as its connection is there.
struct OpenRequest {
    inner: Arc<LocalSessionManager>,
    peers: Arc<Peers>,
    session: SessionId,
    number: u64,
    unanswered: Option<RequestId>,
    runtime: Handle,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.peers.request_answered(&self.session, self.number);
        let Some(request) = self.unanswered.take() else { return };
        let (inner, session) = (self.inner.clone(), self.session.clone());
        self.runtime.spawn(async move {
            // The session may be gone as well.
            let _ = inner.accept_message(&session, cancelled(request)).await;
        });
    }
}

fn is_answer(event: &ServerSseMessage) -> bool {
    matches!(
        event.message.as_deref(),
        Some(ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_))
    )
}

fn list_changed() -> ServerSseMessage {
    let notification =
        ServerNotification::ToolListChangedNotification(ToolListChangedNotification::default());
    ServerSseMessage::from_message(ServerJsonRpcMessage::notification(notification))
}

/// What a client says that does not want an answer any more.
fn cancelled(request: RequestId) -> ClientJsonRpcMessage {
    let reason = "the connection of the request has gone".to_owned();
    let params = CancelledNotificationParam::new(Some(request), Some(reason));
    let notification = CancelledNotification::new(params);
    ClientJsonRpcMessage::notification(ClientNotification::CancelledNotification(notification))
}
