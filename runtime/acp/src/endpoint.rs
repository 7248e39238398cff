//! The tools of extensions by MCP: one endpoint for each session, reached by HTTP on the loopback interface or by a
//! socket. Clients hear when the list of tools changes, and a call in which it changes is answered when they have
//! listed it again.

mod connections;
mod dispatcher;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod ledger;
mod peers;
mod schema;
mod sessions;
mod socket;
#[cfg(test)]
mod tests;
mod tools;

use std::io::Error;
use std::io::ErrorKind;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::Value;
use serde_json::json;
use tenon_host::Session;
use tenon_host::private_socket::SocketFile;
use tenon_host::session::PermissionCheck;
use tenon_host::session::WeakSession;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::http::Gate;
use crate::config::McpTransport;
use crate::config::ReloadStrategy;
pub use dispatcher::CALL as DISPATCH_CALL;
pub use dispatcher::LIST as DISPATCH_LIST;
pub use ledger::CallLedger;
pub use ledger::MAX_REMEMBERED as MAX_REMEMBERED_CALLS;
use peers::Peers;
use sessions::Sessions;

/// What the server is called, towards agents too.
pub const SERVER_NAME: &str = "tenon";

/// How long the answer to a call in which the list of tools changed waits for clients to list it again. Those
/// that list again do so within a second unless the machine is busy; some list only after the answer, and wait for
/// nothing here.
pub const RELIST_PATIENCE: Duration = Duration::from_secs(5);

/// The longest message of a client, in bytes. The arguments of a tool are a file at most.
pub const MAX_MESSAGE_BYTES: usize = 16 * 1024 * 1024;

/// How long clients may take to leave when the endpoint closes.
const CLOSE_PATIENCE: Duration = Duration::from_secs(2);

/// How long to wait after a client could not be accepted, most likely for want of file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);

/// The event that says that the tools of extensions have changed.
const TOOLS_UPDATED: &str = "session.tools_updated";

/// How an endpoint works.
pub struct EndpointOptions {
    /// How the agent is told of new tools.
    pub reload: ReloadStrategy,
    /// Whether the person still has to be asked about calls.
    pub permission: PermissionCheck,
    /// Where to listen, on the loopback interface; `None`: 127.0.0.1 and a port that is free.
    pub address: Option<SocketAddr>,
    /// What clients have to show; `None`: something nobody can guess.
    pub token: Option<String>,
    /// Where the socket is put; nobody but the user can enter it afterwards.
    pub run_dir: PathBuf,
    /// Calls belong to the agent's turn: after it was aborted they are refused until the next begins.
    pub turn_bound: bool,
    /// Clients have to begin with `initialize`: revisions of MCP from 2026-07-28 on are not offered.
    pub initialize_only: bool,
}

/// What every connection serves.
struct Shared {
    session: WeakSession,
    reload: ReloadStrategy,
    permission: PermissionCheck,
    initialize_only: bool,
    turn_bound: bool,
    /// See [`RELIST_PATIENCE`].
    patience: Duration,
    peers: Arc<Peers>,
    calls: CallLedger,
    /// The turn that calls belong to was aborted, and no other has begun.
    aborted: AtomicBool,
    /// Calls end, and nobody is served any more.
    closing: CancellationToken,
}

impl Shared {
    fn new(session: WeakSession, reload: ReloadStrategy, permission: PermissionCheck) -> Self {
        Self {
            session,
            reload,
            permission,
            initialize_only: false,
            turn_bound: false,
            patience: RELIST_PATIENCE,
            peers: Peers::new(),
            calls: CallLedger::default(),
            aborted: AtomicBool::new(false),
            closing: CancellationToken::new(),
        }
    }

    /// Tells clients of changes without being told: a session without an agent tells nobody else.
    fn follow_tools(&self, session: &Session) {
        let peers = Arc::downgrade(&self.peers);
        session.tap(move |event| {
            if event.kind == TOOLS_UPDATED
                && let Some(peers) = peers.upgrade()
            {
                peers.changed();
            }
        });
    }

    /// Notices when a turn is aborted, and when the next begins.
    fn follow_turns(self: &Arc<Self>, session: &Session) {
        let shared = Arc::downgrade(self);
        session.tap(move |event| {
            let aborted = match event.kind.as_str() {
                "abort" => true,
                "assistant.turn_start" => false,
                _ => return,
            };
            if let Some(shared) = shared.upgrade() {
                shared.aborted.store(aborted, Ordering::Release);
            }
        });
    }
}

/// Where the tools of a session can be listed and called.
pub struct Endpoint {
    shared: Arc<Shared>,
    address: SocketAddr,
    token: String,
    socket: SocketFile,
    serving: Mutex<Vec<JoinHandle<()>>>,
}

impl Endpoint {
    /// Starts to listen. Must be called inside a tokio runtime.
    pub async fn start(session: WeakSession, options: EndpointOptions) -> std::io::Result<Self> {
        Self::start_patiently(session, options, RELIST_PATIENCE).await
    }

    async fn start_patiently(
        session: WeakSession,
        options: EndpointOptions,
        patience: Duration,
    ) -> std::io::Result<Self> {
        let address = options.address.unwrap_or_else(|| (Ipv4Addr::LOCALHOST, 0).into());
        if !address.ip().is_loopback() {
            let message = format!(
                "{address} is not a loopback address: the token would travel unencrypted; let a \
                 proxy with TLS or an SSH tunnel lead there"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        let token = match options.token {
            Some(token) if is_usable(&token) => token,
            Some(_) => {
                let message = "a token has letters, digits and signs only, and at least one";
                return Err(Error::new(ErrorKind::InvalidInput, message));
            }
            None => made_up_token(),
        };
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (lines, socket) = socket::listen(&options.run_dir).await?;
        let shared = Arc::new(Shared {
            initialize_only: options.initialize_only,
            turn_bound: options.turn_bound,
            patience,
            ..Shared::new(session, options.reload, options.permission)
        });
        if options.turn_bound
            && let Some(session) = shared.session.upgrade()
        {
            shared.follow_turns(&session);
        }
        let sessions = Sessions::new(shared.peers.clone());
        let gate = Gate::new(&shared, sessions.clone(), token.clone(), address.port());
        let serving = vec![
            tokio::spawn(http::serve(listener, gate, sessions, shared.closing.clone())),
            tokio::spawn(socket::serve(lines, shared.clone())),
        ];
        Ok(Self { shared, address, token, socket, serving: Mutex::new(serving) })
    }

    /// Where it is reached by HTTP.
    pub fn url(&self) -> String {
        format!("http://{}{}", self.address, http::PATH)
    }

    /// What has to be shown there, as a bearer token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where it is reached by [`crate::shim::run`].
    pub fn socket(&self) -> &Path {
        self.socket.path()
    }

    /// The endpoint as an ACP `McpServer`; `tenon` is our own program.
    pub fn acp_server(&self, transport: McpTransport, tenon: &Path) -> Value {
        match transport {
            McpTransport::Http => json!({
                "type": "http",
                "name": SERVER_NAME,
                "url": self.url(),
                "headers": [{ "name": "Authorization", "value": format!("Bearer {}", self.token) }],
            }),
            McpTransport::Stdio => json!({
                "name": SERVER_NAME,
                "command": tenon.to_string_lossy(),
                "args": ["mcp-shim", self.socket().to_string_lossy()],
                "env": [],
            }),
        }
    }

    /// The tools of extensions have changed: every client is told. Quick, and callable from anywhere.
    pub fn tools_changed(&self) {
        self.shared.peers.changed();
    }

    /// Notices by itself when the tools change. For a session that has no agent, which would be told.
    pub fn follow(&self, session: &Session) {
        self.shared.follow_tools(session);
    }

    /// Which tool call of the agent each call is.
    pub fn calls(&self) -> &CallLedger {
        &self.shared.calls
    }

    /// Ends it: calls that run are dropped, clients have a moment to leave, the socket goes.
    pub async fn close(&self) {
        self.shared.closing.cancel();
        self.socket.remove();
        let serving = {
            let mut serving = self.serving.lock();
            std::mem::take(&mut *serving)
        };
        for task in serving {
            // One that panicked has ended too.
            let _ = task.await;
        }
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        self.shared.closing.cancel();
    }
}

/// Offers the tools of a session to one client that writes and reads lines, until it leaves. The client is trusted
/// to have asked whoever has to be asked about its calls. Clients hear when the list changes.
pub async fn serve_streams<R, W>(session: &Session, reader: R, writer: W)
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (reload, permission) = (ReloadStrategy::ListChanged, PermissionCheck::Granted);
    let shared = Arc::new(Shared::new(session.downgrade(), reload, permission));
    shared.follow_tools(session);
    // Calls end when nobody waits for the end of this function, too.
    let _closing = shared.closing.clone().drop_guard();
    socket::serve_client(shared, reader, writer).await;
}

/// Two random UUIDs: 244 bits that nobody can guess.
fn made_up_token() -> String {
    let half = || uuid::Uuid::new_v4().simple().to_string();
    format!("{}{}", half(), half())
}

/// Whether a token can be sent in a header.
fn is_usable(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic())
}
