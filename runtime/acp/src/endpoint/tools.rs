//! The MCP server itself: lists the tools of a session and calls them. One for each connection of lines and each
//! HTTP session; HTTP requests without a session have one each.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use rmcp::ErrorData;
use rmcp::RoleServer;
use rmcp::ServerHandler;
use rmcp::model::CallToolRequestParams;
use rmcp::model::CallToolResponse;
use rmcp::model::CallToolResult;
use rmcp::model::ContentBlock;
use rmcp::model::DiscoverRequestMethod;
use rmcp::model::DiscoverResult;
use rmcp::model::ErrorCode;
use rmcp::model::Implementation;
use rmcp::model::InitializeRequestParams;
use rmcp::model::InitializeResult;
use rmcp::model::JsonObject;
use rmcp::model::ListToolsResult;
use rmcp::model::MetaObject;
use rmcp::model::PaginatedRequestParams;
use rmcp::model::ProtocolVersion;
use rmcp::model::ServerCapabilities;
use rmcp::model::ServerConfig;
use rmcp::model::SubscriptionFilter;
use rmcp::model::Tool;
use rmcp::service::Peer;
use rmcp::service::RequestContext;
use rmcp::service::SubscriptionContext;
use serde_json::Value;
use tenon_host::Session;
use tenon_host::session::CallError;
use tenon_host::session::RELOAD_TOOL;
use tenon_host::session::ToolCall;
use tenon_host::session::ToolOutcome;
use tenon_host::tool::ResultType;
use tenon_host::tool::ToolDeclaration;
use tenon_host::tool::ToolResult;
use tokio_util::sync::CancellationToken;

use super::SERVER_NAME;
use super::Shared;
use super::dispatcher;
use super::dispatcher::Route;
use super::peers::Key;
use super::peers::Peers;
use super::schema::schema;
use crate::config::ReloadStrategy;

/// What a client is told about the whole.
const INSTRUCTIONS: &str = "Tools of the extensions that run in this session. The list changes while the session \
                            runs: extensions are written, changed and loaded again.";

/// The answer to calls of a session that has ended.
const SESSION_GONE: &str =
    "The session that these tools belong to has ended; no tool can be called any more.";

/// What Gemini asks its model whether a call is to wait for the one before.
const GEMINI_WAITS: &str = "wait_for_previous";

/// The answer to calls of a turn that was aborted.
const TURN_ABORTED: &str = "The turn was aborted; no tool can be called before the next one.";

/// JSON-RPC's code for a request that was cancelled.
const CANCELLED: ErrorCode = ErrorCode(-32800);

/// The header that says which session an HTTP request belongs to.
const SESSION_HEADER: &str = "mcp-session-id";

/// Keeps a tool in the list of a client that would otherwise make its model search for tools.
const ALWAYS_LOAD: &str = "anthropic/alwaysLoad";

/// Serves one client.
pub(super) struct Tools {
    shared: Arc<Shared>,
    /// The connection, if it is one of lines.
    line: Option<Key>,
    /// The client has begun with `initialize`: it is told of changes without asking.
    initialized: AtomicBool,
    /// Somebody tells it of changes.
    told: AtomicBool,
    /// The client has left.
    gone: CancellationToken,
}

impl Tools {
    /// For an HTTP session, or for one request without a session.
    pub(super) fn over_http(shared: Arc<Shared>) -> Self {
        Self::new(shared, None, CancellationToken::new())
    }

    /// For a connection of lines; `gone` is cancelled when nothing more comes from the client.
    pub(super) fn over_lines(shared: Arc<Shared>, gone: CancellationToken) -> Self {
        let line = shared.peers.line();
        Self::new(shared, Some(line), gone)
    }

    fn new(shared: Arc<Shared>, line: Option<Key>, gone: CancellationToken) -> Self {
        let (initialized, told) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { shared, line, initialized, told, gone }
    }

    fn is_initialized(&self) -> bool {
        self.initialized.load(Ordering::Acquire)
    }

    /// Who asks.
    fn key(&self, context: &RequestContext<RoleServer>) -> Key {
        if let Some(line) = &self.line {
            return line.clone();
        }
        let session = context
            .extensions
            .get::<http::request::Parts>()
            .and_then(|parts| parts.headers.get(SESSION_HEADER)?.to_str().ok());
        match session {
            Some(id) if self.is_initialized() => Key::Session(id.into()),
            _ => Key::Client(context.client_info().map(|client| client.name).unwrap_or_default()),
        }
    }

    /// Tells a client that has listed the tools whenever the list changes, from now on.
    fn tell(&self, key: Key, peer: Peer<RoleServer>) {
        if self.told.swap(true, Ordering::AcqRel) {
            return;
        }
        let (peers, gone) = (self.shared.peers.clone(), self.gone.clone());
        tokio::spawn(async move {
            let tell = || {
                let peer = peer.clone();
                async move { peer.notify_tool_list_changed().await.is_ok() }
            };
            tokio::select! {
                () = gone.cancelled() => {}
                () = tell_changes(&peers, &key, tell) => {}
            }
        });
    }
}

impl Drop for Tools {
    fn drop(&mut self) {
        self.gone.cancel();
        if let Some(line) = &self.line {
            self.shared.peers.left(line);
        }
    }
}

/// Tells a client of every version of the list that it has not seen, until it cannot be told any more.
async fn tell_changes<F, T>(peers: &Peers, key: &Key, tell: F)
where
    F: Fn() -> T,
    T: Future<Output = bool>,
{
    let mut versions = peers.versions();
    let mut is_first = true;
    loop {
        let version = *versions.borrow_and_update();
        // One that has listed nothing is told of what changes from now on.
        let is_behind = peers.seen(key).map_or(!is_first, |seen| seen < version);
        if is_behind && !tell().await {
            return;
        }
        is_first = false;
        if versions.changed().await.is_err() {
            return;
        }
    }
}

impl ServerHandler for Tools {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.initialized.store(true, Ordering::Release);
        context.peer.set_peer_info(request.clone());
        self.negotiate_initialize(&request)
    }

    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        if self.shared.initialize_only {
            return Err(ErrorData::method_not_found::<DiscoverRequestMethod>());
        }
        let versions = ProtocolVersion::KNOWN_VERSIONS.to_vec();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()))
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let supported = || requested.supported_by(&self.get_info().capabilities);
        (!self.shared.initialize_only).then(supported)
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let key = self.key(context.request_context());
        let wants_changes = context.accepted().tools_list_changed == Some(true);
        let _hearing = wants_changes.then(|| self.shared.peers.hearing(key.clone()));
        let telling = async {
            if !wants_changes {
                return std::future::pending().await;
            }
            let tell = || {
                let sink = context.sink().clone();
                async move { sink.notify_tool_list_changed().await.is_ok() }
            };
            tell_changes(&self.shared.peers, &key, tell).await;
        };
        tokio::select! {
            () = context.cancelled() => {}
            () = self.gone.cancelled() => {}
            () = self.shared.closing.cancelled() => {}
            () = telling => {}
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let Some(session) = self.shared.session.upgrade() else {
            return Err(ErrorData::internal_error(SESSION_GONE, None));
        };
        // Before the tools are looked at: a change in between is then one that was not seen.
        let version = self.shared.peers.version();
        let tools = self.shared.offered(&session);
        let key = self.key(&context);
        let always = self.is_initialized() && self.line.is_some();
        self.shared.peers.listed(&key, version, always);
        if self.is_initialized() {
            self.tell(key, context.peer);
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let args = Value::Object(request.arguments.unwrap_or_default());
        let meta = Value::Object(context.meta.0.0.clone());
        // Whatever ends the wait drops the call, which cancels it.
        tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                // Nobody reads it: rmcp does not answer requests that were cancelled.
                Err(ErrorData::new(CANCELLED, "the call was cancelled", None))
            }
            () = self.shared.closing.cancelled() => Ok(failed(SESSION_GONE).into()),
            result = self.shared.call(&request.name, args, &meta) => Ok(result.into()),
        }
    }
}

impl Shared {
    /// The tools a client is offered now.
    fn offered(&self, session: &Session) -> Vec<Tool> {
        let tools = session.tools();
        let tools = tools.iter().map(|listing| &*listing.tool);
        if !matches!(self.reload, ReloadStrategy::Dispatcher) {
            return tools.map(offer).collect();
        }
        // A tool of an extension with one of these names can still be called through the second.
        let pair = dispatcher::declarations();
        let is_free = |tool: &&ToolDeclaration| pair.iter().all(|own| own.name != tool.name);
        pair.iter().chain(tools.filter(is_free)).map(offer).collect()
    }

    /// Calls a tool. If the list of tools changes meanwhile, the answer waits for clients to list it again,
    /// so that the next thing a model is asked is asked with the new list.
    #[tracing::instrument(level = "debug", name = "mcp_call", skip_all, fields(tool = name))]
    async fn call(&self, name: &str, args: Value, meta: &Value) -> CallToolResult {
        let Some(session) = self.session.upgrade() else { return failed(SESSION_GONE) };
        let is_aborted = || self.aborted.load(Ordering::Acquire);
        if is_aborted() {
            return failed(TURN_ABORTED);
        }
        let before = self.peers.version();
        if self.turn_bound {
            // The agent may have announced what is called in the end.
            let inner = args["name"].as_str().filter(|_| name == dispatcher::CALL);
            self.calls.announced(&[name, inner.unwrap_or(name)], meta).await;
            // The turn may have ended meanwhile.
            if is_aborted() {
                return failed(TURN_ABORTED);
            }
        }
        let mut id = self.calls.claim(name, &args, Some(meta));
        let (tool, args) = if matches!(self.reload, ReloadStrategy::Dispatcher) {
            match dispatcher::route(name, args) {
                Ok(Route::Call(tool, args)) => (tool, args),
                Ok(Route::List) => {
                    let text = dispatcher::describe(&session.tools());
                    return CallToolResult::success(vec![ContentBlock::text(text)]);
                }
                Err(why) => return failed(why),
            }
        } else {
            (name.to_owned(), args)
        };
        if id.is_none() && tool != name {
            // The agent may have announced what it called in the end.
            id = self.calls.claim(&tool, &args, Some(meta));
        }
        let args = without_additions(&session, &tool, args);
        // What it loads may have been noticed, and told, a moment before.
        let reloads = tool == RELOAD_TOOL;
        let call = ToolCall { id, permission: self.permission, ..ToolCall::new(tool, args) };
        let outcome = session.call_tool(call).await;
        drop(session);
        let after = self.peers.version();
        if (after > before || reloads) && matches!(self.reload, ReloadStrategy::ListChanged) {
            self.peers.relisted(after, self.patience).await;
        }
        match outcome {
            Ok(outcome) => answer(outcome),
            Err(CallError::UnknownTool { name, available }) => unknown(&name, &available),
        }
    }
}

/// The arguments without what Gemini adds to every schema for its own use, unless the tool has it too.
fn without_additions(session: &Session, tool: &str, mut args: Value) -> Value {
    if let Some(fields) = args.as_object_mut()
        && fields.contains_key(GEMINI_WAITS)
        && !session.tool_has_parameter(tool, GEMINI_WAITS)
    {
        fields.remove(GEMINI_WAITS);
    }
    args
}

/// A tool as MCP describes it.
fn offer(tool: &ToolDeclaration) -> Tool {
    let schema = Arc::new(schema(tool.parameters.as_ref()));
    let is_deferred = tool.rest.get("defer").is_some_and(|defer| defer == "auto");
    let description = (!tool.description.is_empty()).then(|| tool.description.clone().into());
    let offered = Tool::new_with_raw(tool.name.clone(), description, schema);
    if is_deferred {
        return offered;
    }
    offered.with_meta(MetaObject(JsonObject::from_iter([(ALWAYS_LOAD.to_owned(), true.into())])))
}

/// What a call came to, for the model.
fn answer(mut outcome: ToolOutcome) -> CallToolResult {
    let result_type = outcome.result.result_type;
    let attached = attachments(&mut outcome.result);
    let mut content = vec![ContentBlock::text(outcome.text_for_model())];
    content.extend(attached);
    match result_type {
        ResultType::Success => CallToolResult::success(content),
        _ => CallToolResult::error(content),
    }
}

/// Images as they are, taken out of the result; other files are named, because models get nothing else from clients.
fn attachments(result: &mut ToolResult) -> Vec<ContentBlock> {
    let Some(Value::Array(all)) = result.rest.get_mut("binaryResultsForLlm") else {
        return Vec::new();
    };
    let attach = |attached: &mut Value| {
        let data = attached.get_mut("data").map(Value::take);
        let kind = attached["mimeType"].as_str().unwrap_or("application/octet-stream");
        match data {
            Some(Value::String(data))
                if attached["type"] == "image" || kind.starts_with("image/") =>
            {
                ContentBlock::image(data, kind)
            }
            _ => {
                let what = attached["description"].as_str().unwrap_or("a file");
                ContentBlock::text(format!("[{what} ({kind}) cannot be shown here]"))
            }
        }
    };
    all.iter_mut().map(attach).collect()
}

/// A call that did not succeed.
fn failed(why: impl Into<String>) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(why)])
}

fn unknown(name: &str, available: &[String]) -> CallToolResult {
    let there_are = match available {
        [] => "There are no tools now.".to_owned(),
        names => format!("There are: {}.", names.join(", ")),
    };
    failed(format!("There is no tool \"{name}\". {there_are}"))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_keeps_its_name_and_has_no_output_schema() {
        let declared = ToolDeclaration {
            name: "odd.name/of-it".to_owned(),
            description: String::new(),
            parameters: None,
            rest: Map::new(),
        };
        let deferred = ToolDeclaration {
            rest: Map::from_iter([("defer".to_owned(), "auto".into())]),
            ..declared.clone()
        };
        let tool = serde_json::to_value(offer(&declared)).unwrap();
        assert_eq!(tool["name"], "odd.name/of-it");
        assert_eq!(tool["_meta"][ALWAYS_LOAD], true);
        assert!(tool.get("outputSchema").is_none() && tool.get("description").is_none());
        assert!(serde_json::to_value(offer(&deferred)).unwrap().get("_meta").is_none());
    }

    #[test]
    fn images_are_attached_and_other_files_named() {
        let mut result = ToolResult::success("text");
        let binaries = json!([
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "resource", "mimeType": "application/pdf", "data": "AAAA", "description": "the report" },
        ]);
        result.rest.insert("binaryResultsForLlm".to_owned(), binaries);
        let attached = attachments(&mut result);
        assert_eq!(attached[0].as_image().unwrap().data, "AAAA");
        assert!(attached[1].as_text().unwrap().text.contains("the report (application/pdf)"));
    }
}
