//! `tenon demo-agent`: a real ACP agent without a model. It does what the lines of the prompt say, so that whatever
//! an agent can do, well or badly, can be shown and tested at will.
//!
//! It is built on the protocols' own libraries and shares nothing with Tenon's side of them: what works between
//! the two works between independent implementations.

mod command;
mod directive;
mod live;
mod mcp;
mod options;
mod store;
#[cfg(test)]
mod tests;
mod turn;
mod wire;

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_client_protocol::Agent;
use agent_client_protocol::Client;
use agent_client_protocol::Error;
use agent_client_protocol::on_receive_notification;
use agent_client_protocol::on_receive_request;
use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::Responder;
use agent_client_protocol::v1::schema;
use agent_client_protocol::v1::schema::AgentCapabilities;
use agent_client_protocol::v1::schema::AvailableCommand;
use agent_client_protocol::v1::schema::AvailableCommandInput;
use agent_client_protocol::v1::schema::AvailableCommandsUpdate;
use agent_client_protocol::v1::schema::CancelNotification;
use agent_client_protocol::v1::schema::CloseSessionRequest;
use agent_client_protocol::v1::schema::CloseSessionResponse;
use agent_client_protocol::v1::schema::ContentChunk;
use agent_client_protocol::v1::schema::Implementation;
use agent_client_protocol::v1::schema::InitializeRequest;
use agent_client_protocol::v1::schema::InitializeResponse;
use agent_client_protocol::v1::schema::ListSessionsRequest;
use agent_client_protocol::v1::schema::ListSessionsResponse;
use agent_client_protocol::v1::schema::LoadSessionRequest;
use agent_client_protocol::v1::schema::LoadSessionResponse;
use agent_client_protocol::v1::schema::McpCapabilities;
use agent_client_protocol::v1::schema::McpServer;
use agent_client_protocol::v1::schema::NewSessionRequest;
use agent_client_protocol::v1::schema::NewSessionResponse;
use agent_client_protocol::v1::schema::PromptCapabilities;
use agent_client_protocol::v1::schema::PromptRequest;
use agent_client_protocol::v1::schema::PromptResponse;
use agent_client_protocol::v1::schema::ResumeSessionRequest;
use agent_client_protocol::v1::schema::ResumeSessionResponse;
use agent_client_protocol::v1::schema::SessionAdditionalDirectoriesCapabilities;
use agent_client_protocol::v1::schema::SessionCapabilities;
use agent_client_protocol::v1::schema::SessionCloseCapabilities;
use agent_client_protocol::v1::schema::SessionConfigOption;
use agent_client_protocol::v1::schema::SessionId;
use agent_client_protocol::v1::schema::SessionInfo;
use agent_client_protocol::v1::schema::SessionListCapabilities;
use agent_client_protocol::v1::schema::SessionModeState;
use agent_client_protocol::v1::schema::SessionNotification;
use agent_client_protocol::v1::schema::SessionResumeCapabilities;
use agent_client_protocol::v1::schema::SessionUpdate;
use agent_client_protocol::v1::schema::SetSessionConfigOptionRequest;
use agent_client_protocol::v1::schema::SetSessionConfigOptionResponse;
use agent_client_protocol::v1::schema::SetSessionModeRequest;
use agent_client_protocol::v1::schema::SetSessionModeResponse;
use agent_client_protocol::v1::schema::UnstructuredCommandInput;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::signal::unix::SignalKind;
use tokio::signal::unix::signal;

use live::Live;
use mcp::Servers;
use mcp::Wanted;
pub use options::DemoOptions;
pub use options::ExitAt;
use store::Speaker;
use store::Store;
use store::Stored;
use turn::Turn;
use wire::Outlet;

/// How it introduces itself, to clients and to MCP servers.
const AGENT_NAME: &str = "tenon-demo-agent";

/// The exit code of an agent that was told to exit.
const EXIT_CODE: i32 = 3;

/// Is an agent on standard input and output, until the end of the input or SIGTERM. Nothing else may print.
pub async fn serve(options: DemoOptions) -> Result<(), String> {
    let mut terminated = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    tokio::select! {
        ended = serve_on(tokio::io::stdin(), tokio::io::stdout(), options) => ended,
        _ = terminated.recv() => Ok(()),
    }
}

/// Is an agent on any two streams, until the end of the first.
pub async fn serve_on<R, W>(reader: R, writer: W, options: DemoOptions) -> Result<(), String>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let (garbage, deaf) = (options.garbage, options.deaf);
    let agent = Arc::new(DemoAgent::new(options));
    let transport = wire::transport(reader, writer, agent.outlet.clone(), garbage, deaf);
    // A request, the type of its response, and the method that answers it.
    macro_rules! answers {
        ($request:ty, $response:ty, $method:ident) => {{
            let agent = agent.clone();
            async move |request: $request,
                        responder: Responder<$response>,
                        cx: ConnectionTo<Client>| { agent.$method(request, responder, cx) }
        }};
    }
    let hears = {
        let agent = agent.clone();
        async move |notification: CancelNotification, _cx: ConnectionTo<Client>| {
            agent.cancel(&notification.session_id);
            Ok::<(), Error>(())
        }
    };
    Agent
        .v1()
        .name(AGENT_NAME)
        .on_receive_request(
            answers!(InitializeRequest, InitializeResponse, initialize),
            on_receive_request!(),
        )
        .on_receive_request(
            answers!(NewSessionRequest, NewSessionResponse, new_session),
            on_receive_request!(),
        )
        .on_receive_request(
            answers!(LoadSessionRequest, LoadSessionResponse, load_session),
            on_receive_request!(),
        )
        .on_receive_request(
            answers!(ResumeSessionRequest, ResumeSessionResponse, resume_session),
            on_receive_request!(),
        )
        .on_receive_request(
            answers!(ListSessionsRequest, ListSessionsResponse, list_sessions),
            on_receive_request!(),
        )
        .on_receive_request(
            answers!(CloseSessionRequest, CloseSessionResponse, close_session),
            on_receive_request!(),
        )
        .on_receive_request(
            answers!(SetSessionModeRequest, SetSessionModeResponse, set_mode),
            on_receive_request!(),
        )
        .on_receive_request(
            answers!(
                SetSessionConfigOptionRequest,
                SetSessionConfigOptionResponse,
                set_config_option
            ),
            on_receive_request!(),
        )
        .on_receive_request(answers!(PromptRequest, PromptResponse, prompt), on_receive_request!())
        .on_receive_notification(hears, on_receive_notification!())
        .connect_to(transport)
        .await
        .map_err(|error| error.to_string())
}

/// The time in nanoseconds of a clock that only goes forward and is the same for every process: what `@clock` says.
pub fn clock_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32).as_nanos() as u64
}

/// Leaves some last words and ends the process, as an agent that fails does.
fn exit(why: &str, code: i32) -> ! {
    complain(why);
    std::process::exit(code)
}

/// Standard error is an agent's place for what is no message.
fn complain(what: &str) {
    let _ = writeln!(std::io::stderr(), "{AGENT_NAME}: {what}");
}

fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// The error for a session that there is not.
fn unknown(session: &SessionId) -> Error {
    schema::Error::session_not_found(session.clone()).into()
}

/// The agent, with all its sessions.
struct DemoAgent {
    options: DemoOptions,
    store: Store,
    outlet: Arc<Outlet>,
    sessions: Mutex<HashMap<SessionId, Arc<Live>>>,
    deaf: AtomicBool,
}

impl DemoAgent {
    fn new(options: DemoOptions) -> Self {
        Self {
            store: Store::new(options.folder()),
            outlet: Arc::default(),
            sessions: Mutex::default(),
            deaf: AtomicBool::new(options.deaf),
            options,
        }
    }

    fn is_deaf(&self) -> bool {
        self.deaf.load(Ordering::Relaxed)
    }

    fn go_deaf(&self) {
        self.deaf.store(true, Ordering::Relaxed);
    }

    fn exit_if(&self, here: ExitAt) {
        if self.options.exit_at == Some(here) {
            exit("exiting, as the command line says", EXIT_CODE);
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Live>>> {
        self.sessions.lock()
    }

    fn session(&self, id: &SessionId) -> Result<Arc<Live>, Error> {
        self.sessions().get(id).cloned().ok_or_else(|| unknown(id))
    }

    /// Keeps what there is of a session.
    fn keep(&self, live: &Live) {
        let stored = {
            let mut state = live.state();
            state.stored.updated = now();
            state.stored.clone()
        };
        if let Err(error) = self.store.write(&stored) {
            complain(&format!("the session cannot be kept: {error}"));
        }
    }

    fn modes(&self, live: &Live) -> Option<SessionModeState> {
        (!self.options.no_modes).then(|| live.modes())
    }

    fn settings(&self, live: &Live) -> Option<Vec<SessionConfigOption>> {
        (!self.options.no_models).then(|| live.config_options())
    }

    fn initialize(
        &self,
        _request: InitializeRequest,
        responder: Responder<InitializeResponse>,
        cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        self.exit_if(ExitAt::Initialize);
        if self.options.silent {
            // A request whose responder is dropped would be answered.
            return cx.spawn(async move {
                let _unanswered = responder;
                std::future::pending().await
            });
        }
        let loads = !self.options.no_load;
        let mut sessions = SessionCapabilities::new()
            .list(SessionListCapabilities::new())
            .close(SessionCloseCapabilities::new())
            .additional_directories(SessionAdditionalDirectoriesCapabilities::new());
        if loads {
            sessions = sessions.resume(SessionResumeCapabilities::new());
        }
        let prompts = PromptCapabilities::new().image(true).audio(true).embedded_context(true);
        let capabilities = AgentCapabilities::new()
            .load_session(loads)
            .prompt_capabilities(prompts)
            .mcp_capabilities(McpCapabilities::new().http(!self.options.no_http))
            .session_capabilities(sessions);
        let this =
            Implementation::new(AGENT_NAME, env!("CARGO_PKG_VERSION")).title("Tenon demo agent");
        responder.respond(
            InitializeResponse::new(ProtocolVersion::V1)
                .agent_capabilities(capabilities)
                .agent_info(this),
        )
    }

    fn new_session(
        self: &Arc<Self>,
        request: NewSessionRequest,
        responder: Responder<NewSessionResponse>,
        cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        self.exit_if(ExitAt::New);
        if let Err(error) = absolute(&request.cwd) {
            return responder.respond_with_error(error);
        }
        let stored = Stored {
            id: format!("demo-{}", uuid::Uuid::new_v4().simple()),
            cwd: request.cwd.clone(),
            title: None,
            updated: now(),
            mode: live::DEFAULT_MODE.to_owned(),
            model: live::FIRST_MODEL.to_owned(),
            lives: 0,
            messages: Vec::new(),
        };
        let (agent, client) = (self.clone(), cx.clone());
        cx.spawn(async move {
            let live = agent.open(stored, request.cwd, &request.mcp_servers).await;
            let response = NewSessionResponse::new(live.id.clone())
                .modes(agent.modes(&live))
                .config_options(agent.settings(&live));
            let _ = responder.respond(response);
            announce_commands(&client, &live.id);
            Ok(())
        })
    }

    fn load_session(
        self: &Arc<Self>,
        request: LoadSessionRequest,
        responder: Responder<LoadSessionResponse>,
        cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let stored = match self.remembered(&request.session_id, &request.cwd) {
            Ok(stored) => stored,
            Err(error) => return responder.respond_with_error(error),
        };
        let (agent, client) = (self.clone(), cx.clone());
        cx.spawn(async move {
            replay(&client, &request.session_id, &stored);
            let live = agent.open(stored, request.cwd, &request.mcp_servers).await;
            let response = LoadSessionResponse::new()
                .modes(agent.modes(&live))
                .config_options(agent.settings(&live));
            let _ = responder.respond(response);
            announce_commands(&client, &live.id);
            Ok(())
        })
    }

    fn resume_session(
        self: &Arc<Self>,
        request: ResumeSessionRequest,
        responder: Responder<ResumeSessionResponse>,
        cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let stored = match self.remembered(&request.session_id, &request.cwd) {
            Ok(stored) => stored,
            Err(error) => return responder.respond_with_error(error),
        };
        let (agent, client) = (self.clone(), cx.clone());
        cx.spawn(async move {
            let live = agent.open(stored, request.cwd, &request.mcp_servers).await;
            let response = ResumeSessionResponse::new()
                .modes(agent.modes(&live))
                .config_options(agent.settings(&live));
            let _ = responder.respond(response);
            announce_commands(&client, &live.id);
            Ok(())
        })
    }

    /// A session that was kept, or why it cannot be opened again.
    fn remembered(&self, id: &SessionId, cwd: &Path) -> Result<Stored, Error> {
        if self.options.no_load {
            return Err(Error::method_not_found());
        }
        absolute(cwd)?;
        let stored = if self.options.forget { None } else { self.store.read(&id.0) };
        stored.ok_or_else(|| unknown(id))
    }

    /// Opens a session. One of the same id that is open already is closed.
    async fn open(&self, mut stored: Stored, cwd: PathBuf, servers: &[McpServer]) -> Arc<Live> {
        stored.lives += 1;
        stored.cwd.clone_from(&cwd);
        let wanted = Wanted {
            http: !self.options.no_http,
            relist: !self.options.never_list,
            environment: &self.options.environment,
        };
        let servers = Servers::connect(wanted, servers, &cwd).await;
        let live = Arc::new(Live::new(stored, cwd, servers));
        self.keep(&live);
        let before = self.sessions().insert(live.id.clone(), live.clone());
        if let Some(before) = before {
            before.cancel();
        }
        live
    }

    fn list_sessions(
        &self,
        request: ListSessionsRequest,
        responder: Responder<ListSessionsResponse>,
        _cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let here = |stored: &Stored| request.cwd.as_ref().is_none_or(|cwd| *cwd == stored.cwd);
        let kept = self.store.list().into_iter().filter(here).map(|stored| {
            SessionInfo::new(stored.id, stored.cwd).title(stored.title).updated_at(stored.updated)
        });
        responder.respond(ListSessionsResponse::new(kept.collect()))
    }

    fn close_session(
        &self,
        request: CloseSessionRequest,
        responder: Responder<CloseSessionResponse>,
        _cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let Some(live) = self.sessions().remove(&request.session_id) else {
            return responder.respond_with_error(unknown(&request.session_id));
        };
        live.cancel();
        responder.respond(CloseSessionResponse::new())
    }

    fn set_mode(
        &self,
        request: SetSessionModeRequest,
        responder: Responder<SetSessionModeResponse>,
        _cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        if self.options.no_modes {
            return responder.respond_with_error(Error::method_not_found());
        }
        let id = request.mode_id.to_string();
        let changed = self.session(&request.session_id).and_then(|live| {
            if !live::is_mode(&id) {
                return Err(Error::invalid_params().data(format!("there is no mode {id}")));
            }
            live.state().stored.mode = id;
            self.keep(&live);
            Ok(SetSessionModeResponse::new())
        });
        responder.respond_with_result(changed)
    }

    fn set_config_option(
        &self,
        request: SetSessionConfigOptionRequest,
        responder: Responder<SetSessionConfigOptionResponse>,
        _cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        let changed = self.session(&request.session_id).and_then(|live| {
            let value = request.value.as_value_id().map(ToString::to_string).unwrap_or_default();
            if &*request.config_id.0 != live::MODEL_OPTION || !live::is_model(&value) {
                let why = format!("{} cannot be {value:?}", request.config_id);
                return Err(Error::invalid_params().data(why));
            }
            live.state().stored.model = value;
            self.keep(&live);
            Ok(SetSessionConfigOptionResponse::new(live.config_options()))
        });
        responder.respond_with_result(changed)
    }

    fn prompt(
        self: &Arc<Self>,
        request: PromptRequest,
        responder: Responder<PromptResponse>,
        cx: ConnectionTo<Client>,
    ) -> Result<(), Error> {
        self.exit_if(ExitAt::Prompt);
        let live = match self.session(&request.session_id) {
            Ok(live) => live,
            Err(error) => return responder.respond_with_error(error),
        };
        let Some(cancel) = live.begin_turn() else {
            let busy = Error::invalid_request().data("there is a turn in this session already");
            return responder.respond_with_error(busy);
        };
        let agent = self.clone();
        let turn = Turn::new(agent.clone(), live.clone(), cx.clone(), cancel.clone());
        cx.spawn(async move {
            let cancellation = responder.cancellation();
            let mut running = pin!(turn.run(request.prompt));
            let outcome = tokio::select! {
                outcome = &mut running => outcome,
                () = cancellation.cancelled() => {
                    if !agent.is_deaf() {
                        cancel.cancel();
                    }
                    running.await
                }
            };
            live.end_turn();
            let _ = responder.respond_with_result(outcome);
            Ok(())
        })
    }

    fn cancel(&self, session: &SessionId) {
        if !self.is_deaf()
            && let Ok(live) = self.session(session)
        {
            live.cancel();
        }
    }
}

fn absolute(cwd: &Path) -> Result<(), Error> {
    if cwd.is_absolute() {
        return Ok(());
    }
    Err(Error::invalid_params().data(format!("cwd is not absolute: {}", cwd.display())))
}

fn update(cx: &ConnectionTo<Client>, session: &SessionId, update: SessionUpdate) {
    // It fails when the client has gone.
    let _ = cx.send_notification(SessionNotification::new(session.clone(), update));
}

/// Says what was said before.
fn replay(cx: &ConnectionTo<Client>, session: &SessionId, stored: &Stored) {
    for message in &stored.messages {
        let chunk = ContentChunk::new(message.text.as_str().into());
        let said = match message.by {
            Speaker::User => SessionUpdate::UserMessageChunk(chunk),
            Speaker::Agent => SessionUpdate::AgentMessageChunk(chunk),
        };
        update(cx, session, said);
    }
}

fn announce_commands(cx: &ConnectionTo<Client>, session: &SessionId) {
    let input = AvailableCommandInput::Unstructured(UnstructuredCommandInput::new("what to say"));
    let shout = AvailableCommand::new("shout", "Says it in capitals").input(input);
    let commands = AvailableCommandsUpdate::new(vec![shout]);
    update(cx, session, SessionUpdate::AvailableCommandsUpdate(commands));
}
