//! `tenon mcp`: the tools of extensions for any MCP client, by standard input and output and by HTTP.

use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::TcpStream;
use std::process::Child;
use std::process::Command;
use std::process::ExitStatus;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use libtest_mimic::Trial;
use serde_json::Value;
use serde_json::json;
use tenon_acp::rpc::Connection;
use tenon_acp::rpc::Handler;
use tenon_acp::rpc::RpcError;
use tenon_tests::Workspace;
use tenon_tests::trial;
use tokio::sync::mpsc;

use crate::client::PATIENCE;
use crate::client::patiently;
use crate::cycles::MARK;
use crate::cycles::nothing_remains;
use crate::waiting::ends;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("mcp::tools_are_listed_and_called_by_standard_input", stdio),
        trial("mcp::a_written_extension_is_there_without_asking", written),
        trial("mcp::it_ends_with_its_client", ends_with_client),
        trial("mcp::tools_are_listed_and_called_by_http", http),
        trial("mcp::a_written_extension_is_told_by_http", http_written),
        trial("mcp::only_who_has_the_token_is_let_in", tokens),
        trial("mcp::pages_and_other_hosts_are_not_let_in", strangers),
        trial("mcp::a_token_of_the_environment_is_not_printed", given_token),
        trial("mcp::a_server_that_has_said_where_it_is_can_be_told_to_end", told_to_end),
        trial("mcp::only_this_machine_is_listened_to", not_loopback),
    ]
}

/// The revision of MCP that has sessions.
const REVISION: &str = "2025-06-18";

/// A tool that answers, one that fails, and one that is guarded.
const GREETER: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({
  tools: [
    { name: "greet", description: "Greets", parameters: { type: "object", properties: { who: { type: "string" } } }, handler: ({ who }) => `hello ${who}` },
    { name: "stumble", description: "Fails", handler: () => { throw new Error("over a stone"); } },
    { name: "guarded", description: "Is not allowed", handler: () => "never" },
  ],
  hooks: { onPreToolUse: ({ toolName }) => toolName === "guarded" ? { permissionDecision: "deny", permissionDecisionReason: "not for you" } : undefined },
});
"#;

/// An extension with one more tool.
const LATER: &str = r#"import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ tools: [{ name: "later", description: "Came later", handler: () => "here I am" }] });
"#;

const LIST_CHANGED: &str = "notifications/tools/list_changed";

fn workspace() -> Workspace {
    Workspace::new().extension("greeter", GREETER)
}

fn introduction() -> Value {
    json!({ "protocolVersion": REVISION, "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } })
}

fn names(listed: &Value) -> Vec<&str> {
    let tools = listed["tools"].as_array().unwrap_or_else(|| panic!("no tools: {listed:#}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {result:#}"))
}

/// What every client must be able to do, given how it asks.
async fn check<Asked: Future<Output = Value>>(ask: impl Fn(&'static str, Value) -> Asked) {
    let listed = ask("tools/list", json!({})).await;
    for name in ["greet", "stumble", "guarded"] {
        assert!(names(&listed).contains(&name), "{listed:#}");
    }
    let is_greet = |tool: &&Value| tool["name"] == "greet";
    let greet = listed["tools"].as_array().unwrap().iter().find(is_greet).unwrap();
    assert_eq!(greet["description"], "Greets");
    assert_eq!(greet["inputSchema"]["properties"]["who"]["type"], "string", "{greet:#}");
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let greeted = ask("tools/call", call("greet", json!({ "who": "you" }))).await;
    assert_eq!(text(&greeted), "hello you");
    assert_ne!(greeted["isError"], true, "{greeted:#}");
    let failed = ask("tools/call", call("stumble", json!({}))).await;
    assert_eq!(failed["isError"], true, "{failed:#}");
    assert!(text(&failed).contains("over a stone"), "{failed:#}");
    let denied = ask("tools/call", call("guarded", json!({}))).await;
    assert_eq!(denied["isError"], true, "{denied:#}");
    assert!(text(&denied).contains("not for you"), "{denied:#}");
}

/// A client that has started the program.
struct Client {
    child: tokio::process::Child,
    connection: Connection,
    told: mpsc::UnboundedReceiver<String>,
}

struct Told(mpsc::UnboundedSender<String>);

#[async_trait]
impl Handler for Told {
    async fn notification(&self, method: String, _: Value) {
        // Nobody listens once the test is over.
        let _ = self.0.send(method);
    }

    async fn request(&self, method: String, _: Value) -> Result<Value, RpcError> {
        Err(RpcError::method_not_found(&method))
    }

    fn garbage(&self, line: &str, why: &str) {
        panic!("tenon mcp printed {line:?}: {why}");
    }
}

impl Client {
    async fn start(workspace: &Workspace) -> Self {
        let mut command = tokio::process::Command::from(workspace.command(&["mcp"]));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, told) = mpsc::unbounded_channel();
        let connection = Connection::new(stdout, stdin, Arc::new(Told(sender)));
        let client = Self { child, connection, told };
        let welcome = client.request("initialize", introduction()).await;
        assert_eq!(welcome["serverInfo"]["name"], "tenon", "{welcome:#}");
        assert_eq!(welcome["capabilities"]["tools"]["listChanged"], true, "{welcome:#}");
        client.connection.notify("notifications/initialized", json!({})).await.unwrap();
        client
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        patiently(method, self.connection.request(method, params)).await.unwrap()
    }

    /// Waits until it is told that the list has changed.
    async fn list_changes(&mut self) {
        let told = async { while self.told.recv().await.expect("it is there") != LIST_CHANGED {} };
        patiently("the client is told of new tools", told).await;
    }

    /// Waits until the list has changed to one with the wanted names. It may be told more than once of one change.
    async fn lists(&mut self, is_wanted: impl Fn(&[&str]) -> bool) {
        loop {
            self.list_changes().await;
            let listed = self.request("tools/list", json!({})).await;
            if is_wanted(&names(&listed)) {
                return;
            }
        }
    }

    async fn end(mut self) -> ExitStatus {
        self.connection.close().await;
        patiently("tenon mcp ends with its client", self.child.wait()).await.unwrap()
    }
}

async fn stdio() {
    let workspace = workspace();
    let client = Client::start(&workspace).await;
    check(|method, params| client.request(method, params)).await;
    let unknown = json!({ "name": "nobody", "arguments": {} });
    let answer = patiently("a call", client.connection.request("tools/call", unknown)).await;
    match answer {
        Ok(result) => assert_eq!(result["isError"], true, "{result:#}"),
        Err(error) => assert!(error.message.contains("nobody"), "{error}"),
    }
    assert!(client.end().await.success());
}

async fn written() {
    let workspace = workspace();
    let mut client = Client::start(&workspace).await;
    let before = client.request("tools/list", json!({})).await;
    assert!(!names(&before).contains(&"later"), "{before:#}");
    workspace.file(".github/extensions/later/extension.mjs", LATER);
    client.lists(|names| names.contains(&"later")).await;
    let called = client.request("tools/call", json!({ "name": "later", "arguments": {} })).await;
    assert_eq!(text(&called), "here I am");
    std::fs::remove_dir_all(workspace.cwd().join(".github/extensions/later")).unwrap();
    client.lists(|names| !names.contains(&"later")).await;
    assert!(client.end().await.success());
}

async fn ends_with_client() {
    let mark = format!("mcp-{}", std::process::id());
    let workspace = workspace().env(MARK, &mark);
    let client = Client::start(&workspace).await;
    assert!(client.end().await.success());
    nothing_remains(&mark).await;
    let sockets = std::fs::read_dir(workspace.home().join("run")).unwrap().count();
    assert_eq!(sockets, 0, "sockets remain");
    // Also when it is killed.
    let client = Client::start(&workspace).await;
    // SAFETY: the process is ours and has not been waited for.
    unsafe { libc::kill(client.child.id().unwrap().cast_signed(), libc::SIGKILL) };
    nothing_remains(&mark).await;
}

/// The program as a server, which is killed when this is dropped.
struct Server {
    child: Child,
    /// `127.0.0.1:PORT`.
    host: String,
    token: String,
    /// What it has printed about itself.
    told: Value,
}

impl Server {
    fn start(workspace: &Workspace) -> Self {
        Self::of(workspace.command(&["mcp", "--http", "127.0.0.1:0", "--json"]))
    }

    fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: Value = serde_json::from_str(&line).unwrap();
        let url = told["url"].as_str().unwrap();
        let host = url.strip_prefix("http://").and_then(|it| it.strip_suffix("/mcp")).unwrap();
        let token = told["token"].as_str().unwrap_or_default().to_owned();
        Self { child, host: host.to_owned(), token, told }
    }

    /// The headers of a client that is let in.
    fn headers(&self) -> Vec<(&'static str, String)> {
        vec![
            ("Host", self.host.clone()),
            ("Authorization", format!("Bearer {}", self.token)),
            ("Accept", "application/json, text/event-stream".to_owned()),
            ("Content-Type", "application/json".to_owned()),
        ]
    }

    /// Sends a request; the connection from which the answer can be read.
    fn send(&self, first: &str, headers: &[(&str, String)], body: &str) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(&self.host).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut request = format!("{first} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        (&stream).write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Sends a request of a client with other headers; the status of the answer.
    fn status(&self, headers: &[(&str, String)]) -> u16 {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": introduction() });
        Answer::read(&mut self.send("POST /mcp", headers, &body.to_string())).status
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The beginning of an answer by HTTP.
struct Answer {
    status: u16,
    /// With names in small letters.
    headers: Vec<(String, String)>,
}

impl Answer {
    fn read(stream: &mut impl BufRead) -> Self {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert_ne!(stream.read_line(&mut line).unwrap(), 0, "the answer ends after {lines:?}");
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        let headers = lines[1..].iter().filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()));
        Self { status, headers: headers.collect() }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

/// A session of a client by HTTP.
struct Session<'a> {
    server: &'a Server,
    id: String,
}

impl<'a> Session<'a> {
    fn open(server: &'a Server) -> Self {
        let body =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": introduction() });
        let mut stream = server.send("POST /mcp", &server.headers(), &body.to_string());
        let answer = Answer::read(&mut stream);
        assert_eq!(answer.status, 200);
        let id = answer.header("mcp-session-id").expect("a session").to_owned();
        let session = Self { server, id };
        let body = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let answer = Answer::read(&mut session.post(&body));
        assert_eq!(answer.status, 202);
        session
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = self.server.headers();
        headers.push(("Mcp-Session-Id", self.id.clone()));
        headers.push(("MCP-Protocol-Version", REVISION.to_owned()));
        headers
    }

    fn post(&self, message: &Value) -> BufReader<TcpStream> {
        self.server.send("POST /mcp", &self.headers(), &message.to_string())
    }

    /// Sends a request; its result.
    fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        let mut stream = self.post(&message);
        let answer = Answer::read(&mut stream);
        assert_eq!(answer.status, 200, "{method}");
        let mut body = String::new();
        stream.read_to_string(&mut body).unwrap();
        // A line of its own, whether it is the body, a chunk of it, or an event.
        let lines = body.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
        let mut messages = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let answer = messages.find(|message| message["id"] == 7);
        let answer = answer.unwrap_or_else(|| panic!("no answer to {method} in {body:?}"));
        assert_eq!(answer.get("error"), None, "{answer:#}");
        answer["result"].clone()
    }
}

async fn http() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let session = Session::open(&server);
    check(|method, params| std::future::ready(session.request(method, params))).await;
    // Two at a time, each with its own session.
    let other = Session::open(&server);
    assert_ne!(session.id, other.id);
    assert!(names(&other.request("tools/list", json!({}))).contains(&"greet"));
    // One that has left is not known any more.
    let answer = Answer::read(&mut server.send("DELETE /mcp", &other.headers(), ""));
    assert!((200..300).contains(&answer.status), "{}", answer.status);
    let message = json!({ "jsonrpc": "2.0", "id": 8, "method": "tools/list" });
    assert_eq!(Answer::read(&mut other.post(&message)).status, 404);
}

async fn http_written() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let session = Session::open(&server);
    let before = session.request("tools/list", json!({}));
    assert!(!names(&before).contains(&"later"), "{before:#}");
    let mut stream = server.send("GET /mcp", &session.headers(), "");
    let answer = Answer::read(&mut stream);
    assert_eq!(answer.status, 200);
    assert!(answer.header("content-type").is_some_and(|it| it.starts_with("text/event-stream")));
    workspace.file(".github/extensions/later/extension.mjs", LATER);
    let mut line = String::new();
    let deadline = Instant::now() + PATIENCE;
    while !line.contains(LIST_CHANGED) {
        // Lines that keep the connection alive come for ever.
        assert!(Instant::now() < deadline, "nobody was told of new tools");
        line.clear();
        assert_ne!(stream.read_line(&mut line).unwrap(), 0, "nobody was told of new tools");
    }
    let after = session.request("tools/list", json!({}));
    assert!(names(&after).contains(&"later"), "{after:#}");
    let called = session.request("tools/call", json!({ "name": "later", "arguments": {} }));
    assert_eq!(text(&called), "here I am");
}

async fn tokens() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    assert!(server.token.len() >= 32, "{}", server.token);
    let with = |authorization: Option<String>| {
        let mut headers = server.headers();
        headers.retain(|(name, _)| *name != "Authorization");
        headers.extend(authorization.map(|value| ("Authorization", value)));
        server.status(&headers)
    };
    assert_eq!(with(None), 401);
    assert_eq!(with(Some("Bearer wrong".to_owned())), 401);
    assert_eq!(with(Some(format!("Basic {}", server.token))), 401);
    assert_eq!(with(Some(format!("Bearer {}x", server.token))), 401);
    assert_eq!(with(Some(format!("Bearer {}", server.token))), 200);
}

async fn strangers() {
    let workspace = workspace();
    let server = Server::start(&workspace);
    let with = |name: &'static str, value: &str| {
        let mut headers = server.headers();
        headers.retain(|(it, _)| *it != name);
        headers.push((name, value.to_owned()));
        server.status(&headers)
    };
    let port = server.host.rsplit_once(':').unwrap().1;
    assert_eq!(with("Host", "example.org"), 403);
    assert_eq!(with("Host", &format!("example.org:{port}")), 403);
    assert_eq!(with("Host", "127.0.0.1:1"), 403);
    assert_eq!(with("Host", &format!("localhost:{port}")), 200);
    assert_eq!(with("Origin", "https://example.org"), 403);
    assert_eq!(with("Origin", "null"), 403);
    assert_eq!(with("Origin", &format!("http://localhost:{port}")), 200);
    let elsewhere = Answer::read(&mut server.send("POST /", &server.headers(), "{}"));
    assert_eq!(elsewhere.status, 404);
}

async fn given_token() {
    let mark = format!("mcp-token-{}", std::process::id());
    let workspace = workspace().env(MARK, &mark).env("TENON_MCP_TOKEN", "a-token-of-mine");
    let mut server = Server::start(&workspace);
    assert_eq!(server.told.get("token"), None, "{}", server.told);
    server.token = "a-token-of-mine".to_owned();
    let session = Session::open(&server);
    assert!(names(&session.request("tools/list", json!({}))).contains(&"greet"));
    // Whoever may look at processes does not learn it.
    let environment = std::fs::read(format!("/proc/{}/environ", server.child.id())).unwrap();
    assert!(!String::from_utf8_lossy(&environment).contains("a-token-of-mine"));
    // SAFETY: the process is ours and has not been waited for.
    unsafe { libc::kill(server.child.id().cast_signed(), libc::SIGTERM) };
    assert!(ends(&mut server.child).success());
    nothing_remains(&mark).await;
}

async fn told_to_end() {
    let mark = format!("mcp-told-to-end-{}", std::process::id());
    let workspace = workspace().env(MARK, &mark);
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let mut server = Server::start(&workspace);
        // SAFETY: the process is ours and has not been waited for.
        unsafe { libc::kill(server.child.id().cast_signed(), signal) };
        assert!(ends(&mut server.child).success());
    }
    nothing_remains(&mark).await;
}

async fn not_loopback() {
    let run = workspace().run(&["mcp", "--http", "0.0.0.0:0"]);
    assert_eq!(run.code, 1, "{run:#?}");
    assert!(run.stderr.contains("loopback"), "{}", run.stderr);
}
