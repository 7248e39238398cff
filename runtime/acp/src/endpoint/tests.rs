//! The endpoint as clients see it: rmcp's own client over HTTP and lines, and requests written by hand.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use rmcp::ClientHandler;
use rmcp::ClientLifecycleMode;
use rmcp::ClientServiceExt;
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::model::CallToolResult;
use rmcp::model::ClientConfig;
use rmcp::model::ProtocolVersion;
use rmcp::model::ServerNotification;
use rmcp::model::SubscriptionFilter;
use rmcp::serve_client;
use rmcp::service::NotificationContext;
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value;
use serde_json::json;
use tenon_host::Session;
use tenon_host::SessionOptions;
use tenon_host::front::Decision;
use tenon_host::front::Front;
use tenon_host::session::PermissionCheck;
use tenon_protocol::permission::PermissionRequest;
use tokio::io::AsyncBufReadExt;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;

use super::DISPATCH_CALL;
use super::DISPATCH_LIST;
use super::Endpoint;
use super::EndpointOptions;
use super::connections::MAX_UNAUTHENTICATED;
use super::serve_streams;
use crate::config::McpTransport;
use crate::config::ReloadStrategy;

/// More than any test takes: who waits so long waits for an event.
const LONG: Duration = Duration::from_secs(3600);

/// Something that happens, and may happen several times.
struct Happening(Semaphore);

impl Default for Happening {
    fn default() -> Self {
        Self(Semaphore::new(0))
    }
}

impl Happening {
    fn happens(&self) {
        self.0.add_permits(1);
    }

    async fn wait(&self) {
        self.0.acquire().await.unwrap().forget();
    }
}

/// The person, who answers a question when the test wants it. So a call lasts as long as the test likes.
#[derive(Default)]
struct Person {
    asked: Happening,
    answers: Happening,
    /// Nobody waits for the answer any more.
    given_up: Arc<Happening>,
}

struct GivenUp(Option<Arc<Happening>>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        if let Some(given_up) = self.0.take() {
            given_up.happens();
        }
    }
}

#[async_trait]
impl Front for Person {
    async fn request_permission(&self, _request: &PermissionRequest) -> Option<Decision> {
        let mut given_up = GivenUp(Some(self.given_up.clone()));
        self.asked.happens();
        self.answers.wait().await;
        given_up.0 = None;
        Some(Decision::approve())
    }
}

struct World {
    session: Session,
    person: Arc<Person>,
    endpoint: Endpoint,
    _temp: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        Self::with(ReloadStrategy::ListChanged, LONG, |_| {}).await
    }

    async fn with(
        reload: ReloadStrategy,
        patience: Duration,
        change: impl FnOnce(&mut EndpointOptions),
    ) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let person = Arc::new(Person::default());
        let session = Session::new(SessionOptions {
            front: Some(person.clone()),
            ..SessionOptions::new(temp.path().to_owned(), temp.path().to_owned())
        })
        .unwrap();
        let mut options = EndpointOptions {
            reload,
            permission: PermissionCheck::Ask,
            address: None,
            token: None,
            run_dir: temp.path().join("run"),
            turn_bound: false,
            initialize_only: false,
        };
        change(&mut options);
        let endpoint =
            Endpoint::start_patiently(session.downgrade(), options, patience).await.unwrap();
        Self { session, person, endpoint, _temp: temp }
    }

    fn transport_config(&self) -> StreamableHttpClientTransportConfig {
        StreamableHttpClientTransportConfig::with_uri(self.endpoint.url())
            .auth_header(self.endpoint.token())
    }

    async fn http<H: ClientHandler>(&self, handler: H) -> RunningService<RoleClient, H> {
        let transport = StreamableHttpClientTransport::from_config(self.transport_config());
        serve_client(handler, transport).await.unwrap()
    }

    async fn modern(&self, mode: ClientLifecycleMode) -> RunningService<RoleClient, ClientConfig> {
        let transport = StreamableHttpClientTransport::from_config(self.transport_config());
        ClientConfig::default().serve_with_lifecycle(transport, mode).await.unwrap()
    }

    async fn lines<H: ClientHandler>(&self, handler: H) -> RunningService<RoleClient, H> {
        let stream = UnixStream::connect(self.endpoint.socket()).await.unwrap();
        serve_client(handler, stream.into_split()).await.unwrap()
    }

    /// What is waited for when a tool has run to its end, whatever becomes of the answer.
    fn completed(&self) -> Arc<Happening> {
        let completed = Arc::new(Happening::default());
        let happening = completed.clone();
        self.session.tap(move |event| {
            if event.kind == "tool.execution_complete" {
                happening.happens();
            }
        });
        completed
    }
}

fn params(tool: &str, args: Value) -> CallToolRequestParams {
    let args = args.as_object().cloned().unwrap_or_default();
    CallToolRequestParams::new(tool.to_owned()).with_arguments(args)
}

/// A call that the person is asked about.
fn asking() -> CallToolRequestParams {
    params("extensions_manage", json!({ "operation": "disable", "name": "nobody" }))
}

fn listing() -> CallToolRequestParams {
    params("extensions_manage", json!({ "operation": "list" }))
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().unwrap().text
}

/// Lists again when it is told to, but not before the test lets it.
#[derive(Clone, Default)]
struct Relisting {
    told: Arc<Happening>,
    may_list: Arc<Happening>,
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl ClientHandler for Relisting {
    async fn on_tool_list_changed(&self, context: NotificationContext<RoleClient>) {
        self.told.happens();
        self.may_list.wait().await;
        self.log.lock().push("listed");
        context.peer.list_tools(None).await.unwrap();
    }
}

/// A request written by hand, and what comes back.
struct Raw(BufReader<TcpStream>);

impl Raw {
    async fn send(world: &World, head: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let url = world.endpoint.url();
        let host = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let mut stream = TcpStream::connect(&host).await.unwrap();
        let bearer = format!("Bearer {}", world.endpoint.token());
        let length = body.len().to_string();
        let usual = [
            ("Host", host.as_str()),
            ("Authorization", bearer.as_str()),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
            ("Content-Length", length.as_str()),
        ];
        let is_given = |name: &str| headers.iter().any(|(given, _)| *given == name);
        let mut request = format!("{head} HTTP/1.1\r\n");
        for (name, value) in usual.iter().filter(|(name, _)| !is_given(name)).chain(headers) {
            // An empty one is left out.
            if !value.is_empty() {
                request += &format!("{name}: {value}\r\n");
            }
        }
        request += "\r\n";
        stream.write_all((request + body).as_bytes()).await.unwrap();
        Self(BufReader::new(stream))
    }

    async fn post(world: &World, session: &str, message: Value) -> Self {
        let headers = [("Mcp-Session-Id", session)];
        Self::send(world, "POST /mcp", &headers, &message.to_string()).await
    }

    /// A session of a client that never opens a stream to listen.
    async fn initialize(world: &World) -> String {
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "by hand", "version": "1" },
        });
        let message =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let mut answer = Self::post(world, "", message).await;
        let line = answer.until("mcp-session-id: ").await;
        let session = line.trim().trim_start_matches("mcp-session-id: ").to_owned();
        answer.until("\"protocolVersion\":\"2025-06-18\"").await;
        let message = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        Self::post(world, &session, message).await.until("202 Accepted").await;
        session
    }

    async fn list(world: &World, session: &str) {
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        Self::post(world, session, message).await.until("extensions_reload").await;
    }

    async fn call(world: &World, session: &str) -> Self {
        let params = json!({ "name": "extensions_manage", "arguments": asking().arguments });
        let message =
            json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
        Self::post(world, session, message).await
    }

    /// Reads on to a line that contains a text.
    async fn until(&mut self, text: &str) -> String {
        loop {
            let mut line = String::new();
            let read = self.0.read_line(&mut line).await.unwrap();
            assert!(read > 0, "\"{text}\" never came");
            if line.contains(text) {
                return line;
            }
        }
    }

    async fn all(mut self) -> String {
        let mut all = String::new();
        self.0.read_to_string(&mut all).await.unwrap();
        all
    }
}

#[tokio::test]
async fn only_who_has_the_token_and_comes_from_here_is_let_in() {
    let world = World::new().await;
    let foreign = ("Host", "example.com:80");
    type Headers<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Headers<'_>, &str); 9] = [
        ("POST /mcp", &[("Authorization", "")], "401"),
        ("POST /mcp", &[("Authorization", "Bearer wrong")], "401"),
        ("POST /mcp", &[("Authorization", "Basic dGVub24=")], "401"),
        ("POST /mcp", &[foreign], "403"),
        ("POST /mcp", &[("Origin", "https://example.com")], "403"),
        ("POST /mcp", &[("Origin", "null")], "403"),
        ("GET /.well-known/oauth-protected-resource", &[], "404"),
        ("PUT /mcp", &[], "405"),
        ("POST /mcp", &[("Content-Length", "99999999999")], "413"),
    ];
    for (head, headers, status) in cases {
        let mut sent = headers.to_vec();
        sent.push(("Connection", "close"));
        let answer = Raw::send(&world, head, &sent, "").await.all().await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{head} {headers:?}: {answer}");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert!(body["error"]["message"].is_string(), "{body}");
    }
    // The port is looked at as well, and a page of this machine is let in.
    let sent = [("Origin", "http://localhost:3000"), ("Connection", "close")];
    let answer = Raw::send(&world, "POST /mcp", &sent, "{}").await.all().await;
    assert!(!answer.starts_with("HTTP/1.1 40") || answer.starts_with("HTTP/1.1 400"), "{answer}");
    let sent = [("Host", "127.0.0.1:1"), ("Connection", "close")];
    let answer = Raw::send(&world, "POST /mcp", &sent, "{}").await.all().await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn connections_without_the_token_do_not_delay_those_with_it() {
    let world = World::new().await;
    let url = world.endpoint.url();
    let host = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let mut unauthenticated = Vec::new();
    for _ in 0..MAX_UNAUTHENTICATED + 10 {
        unauthenticated.push(TcpStream::connect(&host).await.unwrap());
    }
    // Their deadline is an hour here: this would wait for it.
    let session = Raw::initialize(&world).await;
    Raw::list(&world, &session).await;
    // The oldest were closed to make room. A wrong end of the newest would have been decided before these ends.
    let mut byte = [0];
    let mut newest = unauthenticated.pop().unwrap();
    for mut oldest in unauthenticated.drain(..10) {
        assert!(matches!(oldest.read(&mut byte).await, Ok(0) | Err(_)));
    }
    // The newest are served.
    let request = format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    newest.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    newest.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
}

#[tokio::test]
async fn tools_are_listed_and_called_over_http_and_lines() {
    let world = World::new().await;
    for client in [world.http(()).await, world.lines(()).await] {
        let info = client.peer_info().unwrap();
        assert!(info.instructions.as_ref().is_some_and(|text| text.contains("extensions")));
        let tools = client.list_tools(None).await.unwrap().tools;
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["extensions_manage", "extensions_reload"]);
        assert!(tools.iter().all(|tool| tool.input_schema["type"] == "object"));
        let result = client.call_tool(listing()).await.unwrap();
        assert_eq!(result.is_error, Some(false));
        let result = client.call_tool(params("extensions_reload", json!({}))).await.unwrap();
        assert_eq!(result.is_error, Some(false));
        client.cancel().await.unwrap();
    }
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_those_there_are() {
    let world = World::new().await;
    let client = world.http(()).await;
    let result = client.call_tool(params("nothing", json!({}))).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert!(text(&result).contains("\"nothing\"") && text(&result).contains("extensions_reload"));
}

#[tokio::test]
async fn a_newer_client_discovers_subscribes_and_hears() {
    let world = World::new().await;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let client = world.modern(ClientLifecycleMode::Discover { preferred_versions }).await;
    assert_eq!(client.list_tools(None).await.unwrap().tools.len(), 2);
    let filter = SubscriptionFilter::builder().tools_list_changed().build();
    let mut subscription = client.listen(filter).await.unwrap();
    world.endpoint.tools_changed();
    let heard = subscription.next().await.unwrap().unwrap();
    assert!(matches!(heard, ServerNotification::ToolListChangedNotification(_)));
    assert_eq!(client.call_tool(listing()).await.unwrap().is_error, Some(false));
    subscription.cancel().await.unwrap();
}

#[tokio::test]
async fn an_endpoint_that_wants_initialize_is_found_by_newer_clients_too() {
    let change = |options: &mut EndpointOptions| options.initialize_only = true;
    let world = World::with(ReloadStrategy::ListChanged, LONG, change).await;
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let mode = ClientLifecycleMode::Auto { preferred_versions, legacy_version: None };
    let client = world.modern(mode).await;
    let version = client.peer_info().unwrap().protocol_version.clone();
    assert_eq!(version, ProtocolVersion::LATEST_WITH_INITIALIZE);
    assert_eq!(client.list_tools(None).await.unwrap().tools.len(), 2);
}

/// Runs a call in which the list of tools changes. The client lists again only after the tool has run.
async fn change_during_a_call(
    world: &World,
    client: RunningService<RoleClient, Relisting>,
    relisting: Relisting,
) {
    let completed = world.completed();
    client.list_tools(None).await.unwrap();
    let call = async {
        client.call_tool(asking()).await.unwrap();
        relisting.log.lock().push("answered");
    };
    let events = async {
        world.person.asked.wait().await;
        world.endpoint.tools_changed();
        relisting.told.wait().await;
        world.person.answers.happens();
        completed.wait().await;
        relisting.may_list.happens();
    };
    tokio::join!(call, events);
    assert_eq!(*relisting.log.lock(), ["listed", "answered"]);
    client.cancel().await.unwrap();
}

#[tokio::test]
async fn a_call_in_which_the_list_changes_waits_for_it_to_be_listed_over_http() {
    let world = World::new().await;
    let relisting = Relisting::default();
    let client = world.http(relisting.clone()).await;
    change_during_a_call(&world, client, relisting).await;
}

#[tokio::test]
async fn a_call_in_which_the_list_changes_waits_for_it_to_be_listed_over_lines() {
    let world = World::new().await;
    let relisting = Relisting::default();
    let client = world.lines(relisting.clone()).await;
    change_during_a_call(&world, client, relisting).await;
}

#[tokio::test]
async fn a_client_that_never_lists_again_is_answered_all_the_same() {
    let world = World::with(ReloadStrategy::ListChanged, Duration::from_millis(1), |_| {}).await;
    let client = world.lines(()).await;
    client.list_tools(None).await.unwrap();
    let events = async {
        world.person.asked.wait().await;
        world.endpoint.tools_changed();
        world.person.answers.happens();
    };
    let (result, ()) = tokio::join!(client.call_tool(asking()), events);
    assert_eq!(result.unwrap().is_error, Some(true));
}

#[tokio::test]
async fn a_change_reaches_a_client_without_a_standing_stream_on_the_answer_to_its_call() {
    let world = World::new().await;
    let session = Raw::initialize(&world).await;
    Raw::list(&world, &session).await;
    let mut call = Raw::call(&world, &session).await;
    world.person.asked.wait().await;
    world.endpoint.tools_changed();
    call.until("notifications/tools/list_changed").await;
    world.person.answers.happens();
    Raw::list(&world, &session).await;
    call.until("\"isError\":true").await;
}

#[tokio::test]
async fn a_connection_that_breaks_off_cancels_its_call() {
    let world = World::new().await;
    let session = Raw::initialize(&world).await;
    let call = Raw::call(&world, &session).await;
    world.person.asked.wait().await;
    drop(call);
    world.person.given_up.wait().await;
    // The session goes on.
    Raw::list(&world, &session).await;
}

#[tokio::test]
async fn a_cancelled_call_is_dropped() {
    let world = World::new().await;
    for client in [world.http(()).await, world.lines(()).await] {
        {
            // rmcp's client cancels what nobody waits for.
            let mut call = std::pin::pin!(client.call_tool(asking()));
            tokio::select! {
                _ = &mut call => panic!("nobody has answered"),
                () = world.person.asked.wait() => {}
            }
        }
        // The pinned call was dropped with its block.
        world.person.given_up.wait().await;
        assert_eq!(client.call_tool(listing()).await.unwrap().is_error, Some(false));
    }
}

#[tokio::test]
async fn a_session_that_is_gone_says_so() {
    let World { session, endpoint, person, _temp } = World::new().await;
    let stream = UnixStream::connect(endpoint.socket()).await.unwrap();
    let client = serve_client((), stream.into_split()).await.unwrap();
    drop((session, person));
    let result = client.call_tool(listing()).await.unwrap();
    assert_eq!(result.is_error, Some(true));
    assert!(text(&result).contains("has ended"));
    assert!(client.list_tools(None).await.is_err());
}

#[tokio::test]
async fn a_turn_that_was_aborted_calls_nothing_until_the_next() {
    let change = |options: &mut EndpointOptions| options.turn_bound = true;
    let world = World::with(ReloadStrategy::ListChanged, LONG, change).await;
    let client = world.lines(()).await;
    world.session.emit("abort", json!({ "reason": "test" }));
    let result = client.call_tool(listing()).await.unwrap();
    assert!(text(&result).contains("aborted"));
    world.session.emit("assistant.turn_start", json!({}));
    assert_eq!(client.call_tool(listing()).await.unwrap().is_error, Some(false));
}

#[tokio::test]
async fn a_call_has_the_id_under_which_the_agent_announced_it() {
    let world = World::new().await;
    let ids = Arc::new(Mutex::new(Vec::new()));
    let seen = ids.clone();
    world.session.tap(move |event| {
        if event.kind == "tool.execution_start" {
            seen.lock().push(event.data["toolCallId"].clone());
        }
    });
    let args = Value::Object(listing().arguments.unwrap());
    world.endpoint.calls().announce("extensions_manage", Some(&args), "acp-1");
    world.lines(()).await.call_tool(listing()).await.unwrap();
    assert_eq!(*ids.lock(), ["acp-1"]);
}

#[tokio::test]
async fn nobody_reads_the_arguments_and_results_of_a_call_while_they_are_made_known() {
    let world = World::new().await;
    let read = Arc::new(Mutex::new(Vec::new()));
    let seen = read.clone();
    // Taps look in the order they were added, so this one sees what those of the session and of the endpoint did.
    world.session.tap(move |event| {
        if event.kind.starts_with("tool.") {
            seen.lock().push((event.kind.clone(), event.data.is_read()));
        }
    });
    world.lines(()).await.call_tool(listing()).await.unwrap();
    let expected = ["tool.execution_start", "tool.execution_complete"];
    assert_eq!(*read.lock(), expected.map(|kind| (kind.to_owned(), false)));
}

#[tokio::test]
async fn two_tools_that_never_change_reach_all_others() {
    let world = World::with(ReloadStrategy::Dispatcher, LONG, |_| {}).await;
    let client = world.http(()).await;
    let tools = client.list_tools(None).await.unwrap().tools;
    let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
    assert_eq!(names, [DISPATCH_LIST, DISPATCH_CALL, "extensions_manage", "extensions_reload"]);
    let listed = client.call_tool(params(DISPATCH_LIST, json!({}))).await.unwrap();
    assert!(text(&listed).contains("extensions_reload"));
    let args = json!({ "name": "extensions_manage", "arguments": { "operation": "list" } });
    let called = client.call_tool(params(DISPATCH_CALL, args)).await.unwrap();
    assert_eq!(called.is_error, Some(false));
    let args = json!({ "name": "nothing" });
    let called = client.call_tool(params(DISPATCH_CALL, args)).await.unwrap();
    assert!(text(&called).contains("\"nothing\"") && text(&called).contains("extensions_manage"));
}

#[tokio::test]
async fn an_agent_is_told_how_to_reach_it() {
    let change = |options: &mut EndpointOptions| options.token = Some("known".to_owned());
    let world = World::with(ReloadStrategy::ListChanged, LONG, change).await;
    let tenon = std::path::Path::new("/bin/tenon");
    let http = world.endpoint.acp_server(McpTransport::Http, tenon);
    assert_eq!(http["url"], world.endpoint.url());
    assert_eq!(http["headers"][0], json!({ "name": "Authorization", "value": "Bearer known" }));
    let stdio = world.endpoint.acp_server(McpTransport::Stdio, tenon);
    assert_eq!(stdio["command"], "/bin/tenon");
    assert_eq!(stdio["args"][1], *world.endpoint.socket().to_string_lossy());
}

#[tokio::test]
async fn what_cannot_be_kept_secret_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let options = SessionOptions::new(temp.path().to_owned(), temp.path().to_owned());
    let session = Session::new(options).unwrap();
    let open = "0.0.0.0:0".parse().unwrap();
    for (address, token) in [(Some(open), None), (None, Some("")), (None, Some("two words"))] {
        let options = EndpointOptions {
            reload: ReloadStrategy::ListChanged,
            permission: PermissionCheck::Granted,
            address,
            token: token.map(str::to_owned),
            run_dir: temp.path().join("run"),
            turn_bound: false,
            initialize_only: false,
        };
        let refused = Endpoint::start(session.downgrade(), options).await.err().unwrap();
        assert_eq!(refused.kind(), std::io::ErrorKind::InvalidInput);
    }
}

#[tokio::test]
async fn nothing_is_left_of_an_endpoint_that_was_closed() {
    let world = World::new().await;
    let (socket, url) = (world.endpoint.socket().to_owned(), world.endpoint.url());
    let (http, lines) = (world.http(()).await, world.lines(()).await);
    let waiting = tokio::spawn(async move { lines.call_tool(asking()).await });
    world.person.asked.wait().await;
    world.endpoint.close().await;
    world.person.given_up.wait().await;
    // The call was answered or broken off; either way it is over.
    let _ = waiting.await.unwrap();
    assert!(!socket.exists());
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    assert!(TcpStream::connect(address).await.is_err());
    assert!(http.list_tools(None).await.is_err());
}

#[tokio::test]
async fn one_client_on_two_streams_hears_of_changes_and_ends_it_by_leaving() {
    let world = World::new().await;
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let session = world.session.clone();
    let serving = tokio::spawn(async move { serve_streams(&session, reader, writer).await });
    let relisting = Relisting::default();
    let client = serve_client(relisting.clone(), tokio::io::split(ours)).await.unwrap();
    client.list_tools(None).await.unwrap();
    world.session.emit_ephemeral("session.tools_updated", json!({}));
    relisting.told.wait().await;
    relisting.may_list.happens();
    // The client is trusted: the person is not asked.
    assert_eq!(client.call_tool(asking()).await.unwrap().is_error, Some(true));
    client.cancel().await.unwrap();
    serving.await.unwrap();
}
