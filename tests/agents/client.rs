//! An ACP client that drives `tenon acp`, as an editor does.

use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use serde_json::json;
use tenon_acp::rpc::Connection;
use tenon_acp::rpc::Handler;
use tenon_acp::rpc::RpcError;
use tenon_tests::Workspace;
use tokio::process::Child;
use tokio::sync::watch;

/// How long something may take that takes milliseconds on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(300);

/// Waits for something that must happen.
pub async fn patiently<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(done) => done,
        Err(_) => panic!("this never happened: {what}"),
    }
}

/// What a client answers to the agent's requests.
type Answer = Box<dyn Fn(&str, &Value) -> Result<Value, RpcError> + Send + Sync>;

/// A client with its connection, and everything it was told.
pub struct Client {
    child: Child,
    pub connection: Connection,
    log: Arc<Log>,
}

struct Log {
    told: Mutex<Vec<(String, Value)>>,
    changed: watch::Sender<()>,
    answer: Answer,
}

impl Log {
    fn add(&self, method: String, params: Value) {
        self.told.lock().unwrap().push((method, params));
        self.changed.send_replace(());
    }
}

#[async_trait]
impl Handler for Log {
    async fn notification(&self, method: String, params: Value) {
        self.add(method, params);
    }

    async fn request(&self, method: String, params: Value) -> Result<Value, RpcError> {
        let answer = (self.answer)(&method, &params);
        self.add(method, params);
        answer
    }

    fn garbage(&self, line: &str, why: &str) {
        panic!("tenon acp printed {line:?}: {why}");
    }
}

/// Chooses the option of a kind.
pub fn select(params: &Value, kind: &str) -> Result<Value, RpcError> {
    let options = params["options"].as_array().unwrap();
    let option = options.iter().find(|option| option["kind"] == kind).unwrap();
    Ok(json!({ "outcome": { "outcome": "selected", "optionId": option["optionId"] } }))
}

/// Permits everything, and serves nothing else.
pub fn permits(method: &str, params: &Value) -> Result<Value, RpcError> {
    match method {
        "session/request_permission" => select(params, "allow_once"),
        _ => Err(RpcError::method_not_found(method)),
    }
}

impl Client {
    /// Starts `tenon acp` with more arguments.
    pub fn start(
        workspace: &Workspace,
        args: &[&str],
        answer: impl Fn(&str, &Value) -> Result<Value, RpcError> + Send + Sync + 'static,
    ) -> Self {
        let mut all = vec!["acp"];
        all.extend(args);
        let mut command = tokio::process::Command::from(workspace.command(&all));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let log = Arc::new(Log {
            told: Mutex::default(),
            changed: watch::Sender::new(()),
            answer: Box::new(answer),
        });
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let connection = Connection::new(stdout, stdin, log.clone());
        Self { child, connection, log }
    }

    /// Starts it with the demo agent, and initialises it.
    pub async fn with_demo(workspace: &Workspace) -> Self {
        let client = Self::start(workspace, &["-a", "demo"], permits);
        client.initialize().await;
        client
    }

    pub async fn request(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        patiently(method, self.connection.request(method, params)).await
    }

    pub async fn initialize(&self) -> Value {
        let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        self.request("initialize", params).await.unwrap()
    }

    /// Opens a session; its id.
    pub async fn open(&self, workspace: &Workspace) -> String {
        let params = json!({ "cwd": workspace.cwd(), "mcpServers": [] });
        let opened = self.request("session/new", params).await.unwrap();
        opened["sessionId"].as_str().unwrap().to_owned()
    }

    pub async fn prompt(&self, session: &str, text: &str) -> Result<Value, RpcError> {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.request("session/prompt", params).await
    }

    /// Everything of one kind that the client was told about a session.
    pub fn updates(&self, session: &str, kind: &str) -> Vec<Value> {
        let told = self.log.told.lock().unwrap();
        let of_session = told.iter().filter(|(method, params)| {
            method == "session/update" && params["sessionId"] == session
        });
        let updates = of_session.map(|(_, params)| params["update"].clone());
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// What was said in a session.
    pub fn said(&self, session: &str) -> String {
        let chunks = self.updates(session, "agent_message_chunk");
        chunks.iter().filter_map(|chunk| chunk["content"]["text"].as_str()).collect()
    }

    /// The requests of the agent of that method.
    pub fn requests(&self, method: &str) -> Vec<Value> {
        let told = self.log.told.lock().unwrap();
        told.iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }

    /// Waits until what the client was told is enough.
    pub async fn until<T>(&self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let mut changed = self.log.changed.subscribe();
        patiently(what, async {
            loop {
                changed.borrow_and_update();
                if let Some(found) = look(self) {
                    return found;
                }
                changed.changed().await.unwrap();
            }
        })
        .await
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// The client goes away; how the program ends.
    pub async fn end(mut self) -> ExitStatus {
        self.connection.close().await;
        patiently("tenon acp ends with its client", self.child.wait()).await.unwrap()
    }
}
