//! What the fuzz targets call and nobody else outside of this module.

use http::HeaderMap;
use http_body_util::BodyExt;
use serde_json::Value;

use super::dispatcher;
use super::dispatcher::Route;
use super::http as gate;
use super::schema;

/// The longest body in which the question for a newer revision is looked for, in bytes.
pub const MAX_QUESTION_BYTES: usize = gate::MAX_QUESTION_BYTES;

/// The status and the body of the answer to the question for a newer revision, if a body asks it.
pub async fn decline_discovery(body: &[u8]) -> Option<(u16, Vec<u8>)> {
    let answer = gate::decline_discovery(body)?;
    let status = answer.status().as_u16();
    let Ok(body) = answer.into_body().collect().await;
    Some((status, body.to_bytes().to_vec()))
}

/// Whether a request with these headers was sent to us.
pub fn is_own_host(headers: &HeaderMap, port: u16) -> bool {
    gate::is_own_host(headers, port)
}

/// Whether a page is one of this machine.
pub fn is_local_origin(origin: &str) -> bool {
    gate::is_local_origin::<()>(Ok(origin))
}

/// The tool that a call of one of the two that never change is about, with its arguments; `None`: it wants the list.
pub fn route(name: &str, args: Value) -> Result<Option<(String, Value)>, String> {
    Ok(match dispatcher::route(name, args)? {
        Route::List => None,
        Route::Call(tool, args) => Some((tool, args)),
    })
}

/// The schema of a tool's arguments, as MCP wants it.
pub fn schema(declared: Option<&Value>) -> Value {
    Value::Object(schema::schema(declared))
}
