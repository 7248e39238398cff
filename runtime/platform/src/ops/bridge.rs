//! The three ops behind the SDK: ask the host, answer a call, write to the log.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use deno_core::OpState;
use deno_core::op2;
use serde_json::Value;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::LogRecord;
use tenon_protocol::message::RequestId;
use tenon_protocol::message::ScriptError;
use tokio::sync::Notify;
use tokio::sync::oneshot;

/// The isolate's end of the conversation with its host; lives in the isolate's `OpState`.
pub struct Bridge {
    outbox: Box<dyn Fn(FromIsolate)>,
    pending: HashMap<RequestId, Pending>,
    next_request: RequestId,
    /// Rung when the extension need not stay any longer.
    leave: Rc<Notify>,
    /// Whether every request is refused at once.
    refuses: bool,
}

/// A request that has not been answered.
struct Pending {
    is_join: bool,
    answer: oneshot::Sender<Result<Value, String>>,
}

/// The request with which an extension joins.
const JOIN: &str = "session.join";

impl Bridge {
    /// A bridge that sends through the given function.
    pub fn new(outbox: impl Fn(FromIsolate) + 'static) -> Self {
        Self {
            outbox: Box::new(outbox),
            pending: HashMap::new(),
            next_request: 1,
            leave: Rc::default(),
            refuses: false,
        }
    }

    /// Sends a message to the host.
    pub fn send(&self, message: FromIsolate) {
        (self.outbox)(message);
    }

    /// Has every request refused at once, or not any more. Before a fork nothing may wait for an answer.
    pub fn refuse_requests(&mut self, refuses: bool) {
        self.refuses = refuses;
    }

    /// Lets the event loop end when nothing else is left to do.
    pub fn let_go(&self) {
        self.leave.notify_one();
    }

    /// Hands an answer to the script that waits for it. True if it lets the extension join.
    pub fn answer(&mut self, request: RequestId, result: Result<Value, String>) -> bool {
        let Some(pending) = self.pending.remove(&request) else { return false };
        let has_joined = pending.is_join && result.is_ok();
        // The script may have stopped waiting; then nobody needs the answer.
        let _ = pending.answer.send(result);
        has_joined
    }
}

/// Why a request to the host failed; becomes a JavaScript `Error`.
#[derive(Debug, thiserror::Error, deno_error::JsError)]
pub enum RequestError {
    /// The host said no.
    #[class(generic)]
    #[error("{0}")]
    Refused(String),
    /// The host is gone.
    #[class(generic)]
    #[error("the session ended before it answered `{0}`")]
    Gone(String),
}

/// Asks the host and waits for the answer.
#[op2]
#[serde]
pub async fn op_tenon_request(
    state: Rc<RefCell<OpState>>,
    #[string] method: String,
    #[string] params: String,
) -> Result<serde_json::Value, RequestError> {
    // The session would end the extension for it.
    tenon_protocol::json_values::check(params.as_bytes())
        .map_err(|error| RequestError::Refused(format!("the parameters of {method}: {error}")))?;
    let params = serde_json::from_str(&params).map_err(|error| {
        RequestError::Refused(format!("the parameters of {method} cannot be read: {error}"))
    })?;
    let (sender, receiver) = oneshot::channel();
    {
        let mut state = state.borrow_mut();
        let bridge = state.borrow_mut::<Bridge>();
        if bridge.refuses {
            return Err(RequestError::Refused("there is no session yet".to_owned()));
        }
        let request = bridge.next_request;
        bridge.next_request += 1;
        bridge.pending.insert(request, Pending { is_join: method == JOIN, answer: sender });
        bridge.send(FromIsolate::Request { request, method: method.clone(), params });
    }
    match receiver.await {
        Ok(result) => result.map_err(RequestError::Refused),
        Err(_) => Err(RequestError::Gone(method)),
    }
}

/// Keeps the extension waiting for what the session may bring. Without it a module that awaits an event,
/// and nothing else, would be thought to wait for ever.
#[op2]
pub async fn op_tenon_stay(state: Rc<RefCell<OpState>>) {
    let leave = state.borrow().borrow::<Bridge>().leave.clone();
    leave.notified().await;
}

/// Sends the outcome of a call, in JSON: a value, which nobody needs to read here, or an error in the shape
/// of [`ScriptError`].
#[op2(fast)]
pub fn op_tenon_reply(state: &mut OpState, #[number] call: u64, ok: bool, #[string] text: String) {
    let unreadable = |error: serde_json::Error| ScriptError::message(error.to_string());
    let result =
        if ok { Ok(text) } else { Err(serde_json::from_str(&text).unwrap_or_else(unreadable)) };
    state.borrow::<Bridge>().send(FromIsolate::Reply { call, result });
}

/// Writes to the extension's log. Levels: 0 information, 1 warning, 2 error.
#[op2(fast)]
pub fn op_tenon_log(state: &mut OpState, #[smi] level: u32, #[string] text: String) {
    let level = match level {
        0 => LogLevel::Info,
        1 => LogLevel::Warning,
        _ => LogLevel::Error,
    };
    state.borrow::<Bridge>().send(FromIsolate::Log(LogRecord { level, text }));
}
