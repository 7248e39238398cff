//! The HTTP side: a listener on the loopback interface that lets nobody in without the token, and hands the rest
//! to rmcp.

use std::convert::Infallible;
use std::fs::File;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::HeaderName;
use http::Method;
use http::Request;
use http::Response;
use http::StatusCode;
use http::Uri;
use http::header;
use http::uri::Authority;
use http_body_util::BodyExt;
use http_body_util::Full;
use http_body_util::LengthLimitError;
use http_body_util::Limited;
use http_body_util::combinators::BoxBody;
use hyper::body::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use memchr::memmem;
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use serde_json::Value;
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::ACCEPT_AGAIN;
use super::CLOSE_PATIENCE;
use super::MAX_MESSAGE_BYTES;
use super::Shared;
use super::connections::Connections;
use super::connections::Slot;
use super::sessions::Sessions;
use super::tools::Tools;

/// Where the tools are.
pub(super) const PATH: &str = "/mcp";

/// The methods rmcp knows at that path.
const METHODS: &str = "GET, POST, DELETE";

/// How long a connection may stay open before it has shown the token once. Tests wait for events alone.
const TOKEN_DEADLINE: Duration = Duration::from_secs(if cfg!(test) { 3600 } else { 10 });

/// The longest message in which the question for a newer revision is looked for, in bytes: it says who the
/// client is and what it can do.
pub(super) const MAX_QUESTION_BYTES: usize = 64 * 1024;

/// The question for a newer revision of the protocol.
const DISCOVER: &str = "server/discover";

pub(super) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Who is let in, and to what.
pub(super) struct Gate {
    token: String,
    port: u16,
    initialize_only: bool,
    service: StreamableHttpService<Tools, Sessions>,
}

impl Gate {
    pub(super) fn new(
        shared: &Arc<Shared>,
        sessions: Arc<Sessions>,
        token: String,
        port: u16,
    ) -> Self {
        let config = StreamableHttpServerConfig::default()
            .with_cancellation_token(shared.closing.child_token())
            .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
            .with_json_response(true)
            // See `Sessions`.
            .with_sse_retry(None)
            // We have looked at it, and at the port as well.
            .disable_allowed_hosts();
        let served = shared.clone();
        let make = move || Ok(Tools::over_http(served.clone()));
        let service = StreamableHttpService::new(make, sessions, config);
        Self { token, port, initialize_only: shared.initialize_only, service }
    }

    /// Whether a request is let in.
    fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        // A page in a browser can reach the port under a name that leads to it, and cannot hide the name.
        if !is_own_host(headers, self.port) {
            let message = format!("the Host must be a loopback address with port {}", self.port);
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        if !headers.get_all(header::ORIGIN).iter().all(|origin| is_local_origin(origin.to_str())) {
            let message = "requests from pages of other hosts are not answered";
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        }
        if uri.path() != PATH {
            return Err(Refusal::new(StatusCode::NOT_FOUND, format!("there is only {PATH}")));
        }
        if !self.knows_token(headers) {
            let message =
                "this needs the header \"Authorization: Bearer TOKEN\" with the right token";
            let challenge = (header::WWW_AUTHENTICATE, "Bearer realm=\"tenon\"");
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, message).with(challenge));
        }
        if ![Method::GET, Method::POST, Method::DELETE].contains(method) {
            let message = format!("{method} is not used here; there are {METHODS}");
            let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message);
            return Err(refusal.with((header::ALLOW, METHODS)));
        }
        let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let length = length.and_then(|length| length.parse::<usize>().ok());
        if length.is_some_and(|length| length > MAX_MESSAGE_BYTES) {
            return Err(Refusal::too_large());
        }
        Ok(())
    }

    fn knows_token(&self, headers: &HeaderMap) -> bool {
        let mut all = headers.get_all(header::AUTHORIZATION).iter();
        let (Some(only), None) = (all.next(), all.next()) else { return false };
        let Ok(value) = only.to_str() else { return false };
        let Some((scheme, token)) = value.split_once(' ') else { return false };
        scheme.eq_ignore_ascii_case("bearer")
            && bool::from(token.trim().as_bytes().ct_eq(self.token.as_bytes()))
    }

    async fn respond(&self, request: Request<Incoming>, slot: &Slot) -> Answer {
        let admitted = self.admit(request.method(), request.uri(), request.headers());
        if let Err(refusal) = admitted {
            return refusal.answer();
        }
        slot.authenticated().await;
        let (mut parts, body) = request.into_parts();
        // What handles the request has no use for the token.
        parts.headers.remove(header::AUTHORIZATION);
        let body = match Limited::new(body, MAX_MESSAGE_BYTES).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => return Refusal::too_large().answer(),
            Err(error) => {
                let message = format!("the request could not be read: {error}");
                return Refusal::new(StatusCode::BAD_REQUEST, message).answer();
            }
        };
        if self.initialize_only
            && let Some(answer) = decline_discovery(&body)
        {
            return answer;
        }
        self.service.handle(Request::from_parts(parts, Full::new(body))).await
    }
}

/// Accepts connections until the endpoint closes; then those that are open have a moment to end.
pub(super) async fn serve(
    listener: TcpListener,
    gate: Gate,
    sessions: Arc<Sessions>,
    closing: CancellationToken,
) {
    let gate = Arc::new(gate);
    let open = Arc::new(Connections::default());
    let mut connections = JoinSet::new();
    let mut reserve = Reserve::new();
    let accepting = async {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let (gate, closing) = (gate.clone(), closing.clone());
                    connections.spawn(connection(stream, gate, open.add(), closing));
                }
                Err(_) => {
                    reserve.turn_away(&listener).await;
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
            // What has ended is forgotten.
            while connections.try_join_next().is_some() {}
        }
    };
    tokio::select! {
        () = accepting => {}
        () = closing.cancelled() => {}
    }
    drop(listener);
    sessions.close_all().await;
    let ending = async { while connections.join_next().await.is_some() {} };
    // The rest is dropped with the set.
    let _ = tokio::time::timeout(CLOSE_PATIENCE, ending).await;
}

/// A descriptor that is kept for when no other can be had: then a connection is taken with it and closed at once. A client that is not
/// accepted would wait for ever.
struct Reserve(Option<File>);

impl Reserve {
    fn new() -> Self {
        Self(File::open("/dev/null").ok())
    }

    /// Closes the connection that waits, unless somebody else takes the descriptor first; then it is the next one's turn.
    async fn turn_away(&mut self, listener: &TcpListener) {
        if self.0.take().is_some() {
            let _ = tokio::time::timeout(ACCEPT_AGAIN, listener.accept()).await.map(drop);
        }
        *self = Self::new();
    }
}

/// One connection, to its end.
async fn connection(stream: TcpStream, gate: Arc<Gate>, slot: Slot, closing: CancellationToken) {
    // Answers are small and somebody waits for each; only slower if the system refuses.
    let _ = stream.set_nodelay(true);
    let slot = Arc::new(slot);
    let service = service_fn(|request: Request<Incoming>| {
        let (gate, slot) = (gate.clone(), slot.clone());
        async move { Ok::<_, Infallible>(gate.respond(request, &slot).await) }
    });
    let http = http1::Builder::new();
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let mut deadline = pin!(tokio::time::sleep(TOKEN_DEADLINE));
    let (mut is_late, mut is_closing) = (false, false);
    loop {
        tokio::select! {
            // A client may break off whenever it likes.
            _ = connection.as_mut() => return,
            () = slot.evicted() => return,
            () = deadline.as_mut(), if !is_late => {
                is_late = true;
                if !slot.is_authenticated() {
                    return;
                }
            }
            () = closing.cancelled(), if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Whether a request was sent to us by a name that only we have.
pub(super) fn is_own_host(headers: &HeaderMap, port: u16) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = Authority::try_from(host.as_bytes()) else { return false };
    // Without a port it is the usual one.
    is_plain(&host) && is_loopback(host.host()) && host.port_u16().unwrap_or(80) == port
}

/// Whether there is nothing in it but a host and a port. Nobody who means well sends a user along.
fn is_plain(authority: &Authority) -> bool {
    let rest = authority.as_str().strip_prefix(authority.host());
    let is_port = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    rest.is_some_and(|rest| rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port))
}

/// Whether a page is one of this machine.
pub(super) fn is_local_origin<E>(origin: Result<&str, E>) -> bool {
    let Ok(origin) = origin else { return false };
    // An origin is a scheme, a host and a port. Whatever has more is not from a browser.
    let Some((scheme, host)) = origin.split_once("://") else { return false };
    let Ok(host) = Authority::try_from(host) else { return false };
    matches!(scheme, "http" | "https") && is_plain(&host) && is_loopback(host.host())
}

fn is_loopback(host: &str) -> bool {
    match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback()),
        None => {
            host.eq_ignore_ascii_case("localhost")
                || host.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

/// The answer of a server that does not know the question for a newer revision, if that is what was asked. Almost nothing
/// is: only what has the words in it is read for that.
pub(super) fn decline_discovery(body: &[u8]) -> Option<Answer> {
    if body.len() > MAX_QUESTION_BYTES || memmem::find(body, DISCOVER.as_bytes()).is_none() {
        return None;
    }
    let message: Value = serde_json::from_slice(body).ok()?;
    if message["method"] != DISCOVER {
        return None;
    }
    let error = json!({ "code": -32601, "message": format!("method not found: {DISCOVER}") });
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
    Some(json_answer(StatusCode::OK, &answer))
}

fn json_answer(status: StatusCode, body: &Value) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from(body.to_string())).boxed());
    *response.status_mut() = status;
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Why a request is not let in.
#[derive(Debug)]
struct Refusal {
    status: StatusCode,
    message: String,
    header: Option<(HeaderName, &'static str)>,
}

impl Refusal {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), header: None }
    }

    fn with(self, header: (HeaderName, &'static str)) -> Self {
        Self { header: Some(header), ..self }
    }

    fn too_large() -> Self {
        let message = format!("a message has at most {MAX_MESSAGE_BYTES} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    /// A JSON-RPC error, which MCP clients show.
    fn answer(self) -> Answer {
        let error = json!({ "code": -32600, "message": self.message });
        let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
        let mut response = json_answer(self.status, &body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, header::HeaderValue::from_static(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn only_loopback_hosts_with_our_port_are_ours() {
        let own = |hosts: &[&str]| is_own_host(&headers(header::HOST, hosts), 8080);
        for host in ["127.0.0.1:8080", "localhost:8080", "LOCALHOST:8080", "[::1]:8080"] {
            assert!(own(&[host]), "{host}");
        }
        for host in [
            "127.0.0.1",
            "127.0.0.1:8081",
            "example.com:8080",
            "localhost.example.com:8080",
            "127.0.0.1.example.com:8080",
            "0.0.0.0:8080",
            "10.0.0.1:8080",
            "a@127.0.0.1:8080",
            "[127.0.0.1]:8080",
            "[localhost]:8080",
            "[::1]0:8080",
            "",
        ] {
            assert!(!own(&[host]), "{host}");
        }
        assert!(!own(&[]));
        assert!(!own(&["127.0.0.1:8080", "example.com"]));
        assert!(is_own_host(&headers(header::HOST, &["localhost"]), 80));
    }

    #[test]
    fn only_pages_of_this_machine_are_answered() {
        let local = |origin: &str| is_local_origin::<()>(Ok(origin));
        for origin in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:1"] {
            assert!(local(origin), "{origin}");
        }
        for origin in [
            "null",
            "",
            "https://example.com",
            "http://localhost.example.com",
            "http://127.0.0.1:80#.example.com",
            "http://a@127.0.0.1",
            "http://127.0.0.1/",
            "http://[::1]0",
            "file:///",
        ] {
            assert!(!local(origin), "{origin}");
        }
    }

    #[test]
    fn only_the_question_for_a_newer_revision_is_declined() {
        let discover = br#"{"jsonrpc":"2.0","id":7,"method":"server/discover"}"#;
        assert_eq!(decline_discovery(discover).unwrap().status(), StatusCode::OK);
        assert!(decline_discovery(br#"{"method":"initialize"}"#).is_none());
        assert!(decline_discovery(b"nonsense").is_none());
        let mentioned =
            br#"{"id":7,"method":"tools/call","params":{"arguments":{"text":"server/discover"}}}"#;
        assert!(decline_discovery(mentioned).is_none());
        let padding = " ".repeat(MAX_QUESTION_BYTES);
        let long = format!(r#"{{"id":7,"method":"server/discover"}}{padding}"#);
        assert!(decline_discovery(long.as_bytes()).is_none());
    }
}
