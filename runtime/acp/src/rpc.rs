//! JSON-RPC 2.0 with one message a line, as ACP has it.
//!
//! A pipe of our own, because what is at the other end is not trusted to be gentle: every queue has a
//! limit, a reader that is not followed stops reading, unknown fields stay where they are, and a line that
//! is no message is reported instead of answered. What the messages mean is for whoever uses it.

use async_trait::async_trait;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

mod connection;
mod lines;
mod message;

pub use connection::Connection;
pub use connection::MAX_OPEN_REQUESTS;
pub use connection::OUT_QUEUE;
pub use lines::MAX_LINE_BYTES;
pub use message::Params;

/// What the fuzz targets call and nobody else outside of this module.
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing {
    pub use super::lines::Line;
    pub use super::lines::Lines;
    pub use super::lines::SHOWN_BYTES;
    pub use super::lines::shown;
    pub use super::message::Incoming;
    pub use super::message::Outgoing;
    pub use super::message::answered;
    pub use super::message::read;
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub struct RpcError {
    /// What kind of failure, for programs.
    pub code: i64,
    /// What failed, for people.
    pub message: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

impl RpcError {
    /// What was sent is no request, or none that can be served now.
    pub const INVALID_REQUEST: i64 = -32600;
    /// Nobody serves the method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method does not take these parameters.
    pub const INVALID_PARAMS: i64 = -32602;
    /// It went wrong on the side that serves.
    pub const INTERNAL: i64 = -32603;
    /// The person has to log in first.
    pub const AUTH_REQUIRED: i64 = -32000;
    /// A file, a terminal or a session is not there.
    pub const RESOURCE_NOT_FOUND: i64 = -32002;
    /// Whoever asked no longer wants to know.
    pub const CANCELLED: i64 = -32800;
    /// Ours: the other side is gone.
    pub const CLOSED: i64 = -32099;

    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// Nobody serves `method`.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("Method not found: {method}"))
    }

    /// The parameters are not what the method takes.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// It went wrong on our side.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }

    /// The other side is gone, so there is no answer and will be none.
    pub fn closed() -> Self {
        Self::new(Self::CLOSED, "the other side is gone")
    }

    /// Whether the request failed because the other side is gone.
    pub fn is_closed(&self) -> bool {
        self.code == Self::CLOSED
    }
}

/// What the other side's messages are for.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Takes a notification. They come in the order they were sent, one at a time, and what was sent later
    /// waits: a handler that takes its time holds up the sender. Answers to our own requests are delivered
    /// in the same order, so whoever awaits one has seen every notification before it. For the same reason
    /// a handler must not await a request of its own connection here.
    async fn notification(&self, method: String, params: Value);

    /// Answers a request. Each has a task of its own; it is dropped when the other side cancels the request
    /// (`$/cancel_request`) or is gone.
    async fn request(&self, method: String, params: Value) -> Result<Value, RpcError>;

    /// Hears of a line that is no message: not JSON, not an object of JSON-RPC, the answer to nothing, or
    /// too long. It gets the line's beginning. Nobody is answered.
    fn garbage(&self, _line: &str, _why: &str) {}
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_is_written_without_data_it_does_not_have() {
        let error = RpcError::method_not_found("x/y");
        assert_eq!(
            serde_json::to_value(&error).unwrap(),
            json!({ "code": -32601, "message": "Method not found: x/y" })
        );
        let read: RpcError =
            serde_json::from_value(json!({ "code": 1, "message": "m", "data": [1] })).unwrap();
        assert_eq!(read, RpcError { code: 1, message: "m".into(), data: Some(json!([1])) });
        assert_eq!(read.to_string(), "m");
    }

    #[test]
    fn only_the_error_for_a_lost_other_side_says_it_is_gone() {
        assert!(RpcError::closed().is_closed());
        assert!(!RpcError::internal("x").is_closed());
        assert!(!RpcError::new(RpcError::CANCELLED, "x").is_closed());
    }
}
