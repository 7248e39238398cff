//! A client of the demo agent, with a workspace, and what it sees.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol::Agent;
use agent_client_protocol::ByteStreams;
use agent_client_protocol::Client;
use agent_client_protocol::Error;
use agent_client_protocol::on_receive_notification;
use agent_client_protocol::on_receive_request;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema::ContentBlock;
use agent_client_protocol::v1::schema::InitializeRequest;
use agent_client_protocol::v1::schema::NewSessionRequest;
use agent_client_protocol::v1::schema::PermissionOptionKind;
use agent_client_protocol::v1::schema::PromptRequest;
use agent_client_protocol::v1::schema::RequestPermissionOutcome;
use agent_client_protocol::v1::schema::RequestPermissionRequest;
use agent_client_protocol::v1::schema::RequestPermissionResponse;
use agent_client_protocol::v1::schema::SelectedPermissionOutcome;
use agent_client_protocol::v1::schema::SessionId;
use agent_client_protocol::v1::schema::SessionNotification;
use agent_client_protocol::v1::schema::StopReason;
use parking_lot::Mutex;
use serde_json::Value;
use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::sync::Notify;
use tokio_util::compat::TokioAsyncReadCompatExt;
use tokio_util::compat::TokioAsyncWriteCompatExt;

use crate::DemoOptions;
use crate::serve_on;

/// How long a story may take that takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much may be on its way between the two.
const PIPE: usize = 1 << 16;

/// What a client has seen.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) updates: Mutex<Vec<Value>>,
    pub(super) asked: Mutex<Vec<Value>>,
    pub(super) unanswered: Mutex<Vec<Responder<RequestPermissionResponse>>>,
    more: Notify,
}

impl Seen {
    pub(super) fn updates(&self, kind: &str) -> Vec<Value> {
        let updates = self.updates.lock();
        updates.iter().filter(|update| update["sessionUpdate"] == kind).cloned().collect()
    }

    /// The texts of the chunks of a kind.
    pub(super) fn chunks(&self, kind: &str) -> Vec<String> {
        let text = |update: &Value| update["content"]["text"].as_str().unwrap().to_owned();
        self.updates(kind).iter().map(text).collect()
    }

    pub(super) fn said(&self) -> String {
        self.chunks("agent_message_chunk").concat()
    }

    /// The states that tool calls went through.
    pub(super) fn statuses(&self) -> Vec<String> {
        let updates = self.updates.lock();
        let of_tools = updates.iter().filter(|update| {
            update["sessionUpdate"] == "tool_call" || update["sessionUpdate"] == "tool_call_update"
        });
        let status = |update: &Value| update["status"].as_str().unwrap_or("pending").to_owned();
        of_tools.map(status).collect()
    }

    /// The last update of a tool call.
    pub(super) fn result(&self) -> Value {
        self.updates("tool_call_update").pop().unwrap()
    }

    pub(super) async fn until(&self, come: impl Fn(&Self) -> bool) {
        loop {
            let more = self.more.notified();
            if come(self) {
                return;
            }
            more.await;
        }
    }

    pub(super) fn forget(&self) {
        self.updates.lock().clear();
        self.asked.lock().clear();
    }
}

/// A client, its workspace, and an agent with its state.
pub(super) struct Stage {
    pub(super) temp: TempDir,
    pub(super) seen: Arc<Seen>,
    pub(super) options: DemoOptions,
    /// What the client chooses when it is asked; nothing: it does not answer by itself.
    pub(super) choice: Option<PermissionOptionKind>,
}

impl Stage {
    pub(super) fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let options = DemoOptions {
            state: Some(temp.path().join("state")),
            environment: std::env::vars().collect(),
            ..DemoOptions::default()
        };
        std::fs::create_dir(temp.path().join("work")).unwrap();
        Self { temp, seen: Arc::default(), options, choice: Some(PermissionOptionKind::AllowOnce) }
    }

    pub(super) fn cwd(&self) -> std::path::PathBuf {
        self.temp.path().join("work")
    }

    /// Starts an agent, plays a story with it, and ends it.
    pub(super) async fn play<T>(
        &self,
        story: impl AsyncFnOnce(ConnectionTo<Agent>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (to_agent, agent_reads) = tokio::io::duplex(PIPE);
        let (agent_writes, from_agent) = tokio::io::duplex(PIPE);
        let hears = {
            let seen = self.seen.clone();
            async move |notification: SessionNotification, _cx: ConnectionTo<Agent>| {
                let update = serde_json::to_value(&notification.update).unwrap();
                seen.updates.lock().push(update);
                seen.more.notify_waiters();
                Ok::<(), Error>(())
            }
        };
        let permits = {
            let (seen, choice) = (self.seen.clone(), self.choice);
            async move |request: RequestPermissionRequest,
                        responder: Responder<RequestPermissionResponse>,
                        _cx: ConnectionTo<Agent>| {
                seen.asked.lock().push(serde_json::to_value(&request).unwrap());
                let Some(choice) = choice else {
                    seen.unanswered.lock().push(responder);
                    seen.more.notify_waiters();
                    return Ok::<(), Error>(());
                };
                let chosen = request.options.iter().find(|option| option.kind == choice).unwrap();
                let chosen = SelectedPermissionOutcome::new(chosen.option_id.clone());
                let outcome = RequestPermissionOutcome::Selected(chosen);
                responder.respond(RequestPermissionResponse::new(outcome))
            }
        };
        let transport = ByteStreams::new(to_agent.compat_write(), from_agent.compat());
        let client = Client
            .v1()
            .on_receive_notification(hears, on_receive_notification!())
            .on_receive_request(permits, on_receive_request!())
            .connect_with(transport, async move |cx: ConnectionTo<Agent>| {
                let hello = InitializeRequest::new(ProtocolVersion::V1);
                let answer = cx.send_request(hello).block_task().await?;
                assert_eq!(answer.protocol_version, ProtocolVersion::V1);
                story(cx).await
            });
        let agent = serve_on(agent_reads, agent_writes, self.options.clone());
        let both = async { tokio::join!(client, agent) };
        let (told, served) = tokio::time::timeout(PATIENCE, both).await.expect("an end in time");
        served.unwrap();
        told
    }

    /// One prompt in a new session.
    pub(super) async fn prompt(&self, text: &str) -> StopReason {
        let cwd = self.cwd();
        let outcome = self.play(async |cx| {
            let session = open(&cx, &cwd).await?;
            prompt(&cx, &session, text).await
        });
        outcome.await.unwrap()
    }
}

pub(super) async fn open(cx: &ConnectionTo<Agent>, cwd: &Path) -> Result<SessionId, Error> {
    let opened = cx.send_request(NewSessionRequest::new(cwd)).block_task().await?;
    Ok(opened.session_id)
}

pub(super) async fn prompt(
    cx: &ConnectionTo<Agent>,
    session: &SessionId,
    text: &str,
) -> Result<StopReason, Error> {
    let request = PromptRequest::new(session.clone(), vec![ContentBlock::from(text)]);
    Ok(cx.send_request(request).block_task().await?.stop_reason)
}

/// Sends lines to an agent as they are, and reads as many.
pub(super) async fn exchange(options: DemoOptions, lines: &[Value], answers: usize) -> Vec<String> {
    let (mut to_agent, agent_reads) = tokio::io::duplex(PIPE);
    let (agent_writes, from_agent) = tokio::io::duplex(PIPE);
    let story = async move {
        for line in lines {
            to_agent.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        }
        let mut read = BufReader::new(from_agent).lines();
        let mut received = Vec::new();
        while received.len() < answers {
            received.push(read.next_line().await.unwrap().expect("an answer"));
        }
        received
    };
    let both = async { tokio::join!(serve_on(agent_reads, agent_writes, options), story) };
    let (served, received) = tokio::time::timeout(PATIENCE, both).await.expect("an end in time");
    served.unwrap();
    received
}

pub(super) fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
