//! The MCP servers of a session: connected to, listed, listened to and called.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use agent_client_protocol::v1::schema::McpServer;
use agent_client_protocol::v1::schema::McpServerHttp;
use agent_client_protocol::v1::schema::McpServerStdio;
use http::HeaderName;
use http::HeaderValue;
use rmcp::ClientHandler;
use rmcp::Peer;
use rmcp::RoleClient;
use rmcp::model::CallToolRequestParams;
use rmcp::model::CallToolResult;
use rmcp::model::ClientCapabilities;
use rmcp::model::ClientConfig;
use rmcp::model::Implementation;
use rmcp::model::ProtocolVersion;
use rmcp::model::RequestMetaObject;
use rmcp::serve_client;
use rmcp::service::NotificationContext;
use rmcp::service::RunningService;
use rmcp::transport::IntoTransport;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Map;
use serde_json::Value;
use tokio::process::Child;
use tokio::process::Command;
use tokio::sync::Mutex;

use super::AGENT_NAME;

/// Where a call says which ACP tool call it belongs to, as one of the real agents does.
const CALL_ID: &str = "claudecode/toolUseId";

/// What is wanted of servers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// Whether they may be reached over HTTP.
    pub(super) http: bool,
    /// Whether their tools are listed again when they say that these have changed.
    pub(super) relist: bool,
    /// The environment of those that are programs.
    pub(super) environment: &'a [(String, String)],
}

/// The servers of a session.
pub(super) struct Servers {
    servers: Vec<Server>,
    /// Those that could not be reached, and why.
    failed: Vec<(String, String)>,
}

impl Servers {
    /// Connects to each, all at once. One that fails is left out: a session without some tool is better than none.
    pub(super) async fn connect(wanted: Wanted<'_>, given: &[McpServer], cwd: &Path) -> Self {
        let mut connecting = Vec::new();
        for server in given {
            connecting
                .push(async move { (name_of(server), Server::connect(server, wanted, cwd).await) });
        }
        let mut this = Self { servers: Vec::new(), failed: Vec::new() };
        for (name, connected) in futures::future::join_all(connecting).await {
            match connected {
                Ok(server) => this.servers.push(server),
                Err(why) => this.failed.push((name, why)),
            }
        }
        this
    }

    /// The server that has a tool, and the tool's own name. A list that is on its way is waited for.
    pub(super) async fn find(&self, wanted: &str) -> Option<(&Server, String)> {
        for server in &self.servers {
            for tool in server.tools().await {
                if tool == wanted || server.title(&tool) == wanted {
                    return Some((server, tool));
                }
            }
        }
        None
    }

    /// The names of all tools, and what went wrong.
    pub(super) async fn describe(&self) -> String {
        let mut tools = Vec::new();
        for server in &self.servers {
            tools.extend(server.tools().await);
        }
        let mut lines =
            vec![if tools.is_empty() { "no tools".to_owned() } else { tools.join(", ") }];
        lines.extend(self.failed.iter().map(|(name, why)| format!("{name}: {why}")));
        lines.join("\n")
    }
}

fn name_of(server: &McpServer) -> String {
    match server {
        McpServer::Http(server) => server.name.clone(),
        McpServer::Sse(server) => server.name.clone(),
        McpServer::Stdio(server) => server.name.clone(),
        _ => "unknown".to_owned(),
    }
}

/// One server.
pub(super) struct Server {
    name: String,
    service: RunningService<RoleClient, Listener>,
    tools: Arc<Tools>,
    /// The process, if we started it. It ends when this is dropped.
    _process: Option<Child>,
}

impl Server {
    async fn connect(server: &McpServer, wanted: Wanted<'_>, cwd: &Path) -> Result<Self, String> {
        match server {
            McpServer::Http(_) if !wanted.http => Err("HTTP is not supported".to_owned()),
            McpServer::Http(http) => {
                let transport = StreamableHttpClientTransport::from_config(http_config(http)?);
                Self::over(&http.name, transport, wanted.relist).await
            }
            McpServer::Stdio(stdio) => {
                let mut process = start(stdio, wanted.environment, cwd).map_err(|error| {
                    format!("{} cannot be started: {error}", stdio.command.display())
                })?;
                let (Some(stdout), Some(stdin)) = (process.stdout.take(), process.stdin.take())
                else {
                    return Err("it has no standard input or output".to_owned());
                };
                let mut this = Self::over(&stdio.name, (stdout, stdin), wanted.relist).await?;
                this._process = Some(process);
                Ok(this)
            }
            _ => Err("this kind of server is not supported".to_owned()),
        }
    }

    /// Introduces itself over a transport, and lists the tools.
    async fn over<T, E, A>(name: &str, transport: T, relist: bool) -> Result<Self, String>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let tools = Arc::new(Tools::default());
        let listener = Listener { tools: tools.clone(), relist };
        let service = serve_client(listener, transport).await.map_err(|error| error.to_string())?;
        tools.list(service.peer()).await?;
        Ok(Self { name: name.to_owned(), service, tools, _process: None })
    }

    /// The names of its tools, as listed last.
    async fn tools(&self) -> Vec<String> {
        self.tools.0.lock().await.clone()
    }

    /// How a tool of this server is called in front of people and models.
    pub(super) fn title(&self, tool: &str) -> String {
        format!("mcp__{}__{tool}", self.name)
    }

    /// Calls a tool. The server hears of it when the future is dropped before it is done.
    pub(super) async fn call(
        &self,
        tool: String,
        args: Map<String, Value>,
        call_id: Option<&str>,
    ) -> Result<CallToolResult, String> {
        let mut params = CallToolRequestParams::new(tool).with_arguments(args);
        params.meta = call_id.map(|id| {
            let mut meta = Map::new();
            meta.insert(CALL_ID.to_owned(), id.into());
            RequestMetaObject::from(meta)
        });
        self.service.call_tool(params).await.map_err(|error| error.to_string())
    }
}

/// What a result says, as text.
pub(super) fn text_of(result: &CallToolResult) -> String {
    let texts = result.content.iter().map(|block| match block.as_text() {
        Some(text) => text.text.clone(),
        None => {
            let block = serde_json::to_value(block).unwrap_or_default();
            format!("[{}]", block["type"].as_str().unwrap_or("something else"))
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn http_config(server: &McpServerHttp) -> Result<StreamableHttpClientTransportConfig, String> {
    let mut headers = HashMap::new();
    for header in &server.headers {
        let wrong = |why: &dyn std::fmt::Display| format!("header {}: {why}", header.name);
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|error| wrong(&error))?;
        let value = HeaderValue::from_str(&header.value).map_err(|error| wrong(&error))?;
        headers.insert(name, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str());
    Ok(config.custom_headers(headers))
}

fn start(
    server: &McpServerStdio,
    environment: &[(String, String)],
    cwd: &Path,
) -> std::io::Result<Child> {
    Command::new(&server.command)
        .args(&server.args)
        .env_clear()
        .envs(environment.iter().map(|(name, value)| (name, value)))
        .envs(server.env.iter().map(|variable| (&variable.name, &variable.value)))
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
}

/// The names of a server's tools. Whoever lists holds the lock meanwhile, so that nobody sees the old list once
/// a new one was asked for.
#[derive(Default)]
struct Tools(Mutex<Vec<String>>);

impl Tools {
    async fn list(&self, peer: &Peer<RoleClient>) -> Result<(), String> {
        let mut names = self.0.lock().await;
        let tools = peer.list_all_tools().await.map_err(|error| error.to_string())?;
        *names = tools.into_iter().map(|tool| tool.name.into_owned()).collect();
        Ok(())
    }
}

/// Hears what a server says by itself.
struct Listener {
    tools: Arc<Tools>,
    relist: bool,
}

impl ClientHandler for Listener {
    async fn on_tool_list_changed(&self, context: NotificationContext<RoleClient>) {
        if self.relist {
            // If that fails, the old list stays.
            let _ = self.tools.list(&context.peer).await;
        }
    }

    fn get_info(&self) -> ClientConfig {
        let this = Implementation::new(AGENT_NAME, env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), this)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol::v1::schema::HttpHeader;
    use rmcp::ErrorData;
    use rmcp::RoleServer;
    use rmcp::ServerHandler;
    use rmcp::model::CallToolResponse;
    use rmcp::model::ContentBlock;
    use rmcp::model::ListToolsResult;
    use rmcp::model::PaginatedRequestParams;
    use rmcp::model::ServerCapabilities;
    use rmcp::model::ServerConfig;
    use rmcp::model::Tool;
    use rmcp::serve_server;
    use rmcp::service::RequestContext;
    use serde_json::json;
    use tokio::sync::Notify;

    use super::*;

    /// Has a tool that says what it was called with, one that makes another tool appear and answers only once
    /// that was listed, and one that never answers.
    #[derive(Clone, Default)]
    struct Changing {
        tools: Arc<parking_lot::Mutex<Vec<&'static str>>>,
        listed: Arc<Notify>,
        cancelled: Arc<Notify>,
    }

    impl ServerHandler for Changing {
        fn get_info(&self) -> ServerConfig {
            let capabilities =
                ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
            ServerConfig::new(capabilities)
        }

        async fn list_tools(
            &self,
            _request: Option<PaginatedRequestParams>,
            _context: RequestContext<RoleServer>,
        ) -> Result<ListToolsResult, ErrorData> {
            let names = self.tools.lock().clone();
            let tools =
                names.into_iter().map(|name| Tool::new(name, "A tool", Arc::new(Map::new())));
            self.listed.notify_one();
            Ok(ListToolsResult { tools: tools.collect(), ..ListToolsResult::default() })
        }

        async fn call_tool(
            &self,
            request: CallToolRequestParams,
            context: RequestContext<RoleServer>,
        ) -> Result<CallToolResponse, ErrorData> {
            let text = match &*request.name {
                "grow" => {
                    self.tools.lock().push("new");
                    context.peer.notify_tool_list_changed().await.unwrap();
                    self.listed.notified().await;
                    "grown".to_owned()
                }
                "hang" => {
                    context.ct.cancelled().await;
                    self.cancelled.notify_one();
                    "never seen".to_owned()
                }
                _ => json!([request.arguments, context.meta.get(CALL_ID)]).to_string(),
            };
            Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
        }
    }

    async fn connected(relist: bool) -> (Changing, Server, RunningService<RoleServer, Changing>) {
        let handler = Changing::default();
        handler.tools.lock().extend(["echo", "grow", "hang"]);
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (server, serving) =
            tokio::join!(Server::over("ext", ours, relist), serve_server(handler.clone(), theirs));
        // The listing while connecting is not what the tests wait for.
        handler.listed.notified().await;
        (handler, server.unwrap(), serving.unwrap())
    }

    #[tokio::test]
    async fn a_call_carries_its_arguments_and_the_id_of_its_tool_call() {
        let (_handler, server, _serving) = connected(true).await;
        let args = json!({ "a": 1 }).as_object().cloned().unwrap();
        let result = server.call("echo".to_owned(), args.clone(), Some("call-1")).await.unwrap();
        assert_eq!(text_of(&result), r#"[{"a":1},"call-1"]"#);
        let result = server.call("echo".to_owned(), args, None).await.unwrap();
        assert_eq!(text_of(&result), r#"[{"a":1},null]"#);
    }

    #[tokio::test]
    async fn a_tool_that_appears_during_a_call_can_be_found_after_it() {
        let (_handler, server, _serving) = connected(true).await;
        server.call("grow".to_owned(), Map::new(), None).await.unwrap();
        let servers = Servers { servers: vec![server], failed: Vec::new() };
        let (server, tool) = servers.find("mcp__ext__new").await.unwrap();
        assert_eq!((tool.as_str(), server.title("new").as_str()), ("new", "mcp__ext__new"));
        assert_eq!(servers.describe().await, "echo, grow, hang, new");
    }

    #[tokio::test]
    async fn an_agent_that_never_lists_again_does_not_see_it() {
        let (handler, server, _serving) = connected(false).await;
        // In place of the list that does not come.
        handler.listed.notify_one();
        server.call("grow".to_owned(), Map::new(), None).await.unwrap();
        assert_eq!(server.tools().await, ["echo", "grow", "hang"]);
    }

    #[tokio::test]
    async fn the_server_hears_of_a_call_that_was_given_up() {
        let (handler, server, _serving) = connected(true).await;
        let call = server.call("hang".to_owned(), Map::new(), None);
        let mut call = Box::pin(call);
        // The call has been sent once a later one was answered.
        let later = server.call("echo".to_owned(), Map::new(), None);
        tokio::select! {
            _ = &mut call => panic!("it was answered"),
            result = later => { result.unwrap(); }
        }
        drop(call);
        handler.cancelled.notified().await;
    }

    #[tokio::test]
    async fn a_server_that_cannot_be_reached_is_named_and_the_others_are_not_affected() {
        let cwd = std::env::temp_dir();
        let stdio = McpServer::Stdio(McpServerStdio::new("gone", "/no/such/program"));
        let http = McpServer::Http(McpServerHttp::new("web", "http://127.0.0.1:9/mcp"));
        let wanted = Wanted { http: false, relist: true, environment: &[] };
        let servers = Servers::connect(wanted, &[stdio, http], &cwd).await;
        let described = servers.describe().await;
        assert!(described.starts_with("no tools\ngone: /no/such/program cannot be started"));
        assert!(described.ends_with("web: HTTP is not supported"), "{described}");
    }

    #[test]
    fn a_header_that_is_none_is_refused() {
        let server = McpServerHttp::new("web", "http://127.0.0.1:9/mcp");
        let fine = server.clone().headers(vec![HttpHeader::new("Authorization", "Bearer x")]);
        assert!(http_config(&fine).is_ok());
        let wrong = server.headers(vec![HttpHeader::new("Author ization", "Bearer x")]);
        assert!(http_config(&wrong).is_err_and(|why| why.starts_with("header Author ization")));
    }
}
