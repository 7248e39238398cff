//! `console.*` goes to the extension's log.

use deno_core::OpState;
use deno_core::op2;

use super::bridge::Bridge;
use tenon_protocol::message::FromIsolate;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::LogRecord;

/// Where Deno's console ends; standard output itself is out of reach.
#[op2(fast)]
pub fn op_tenon_print(state: &mut OpState, #[string] text: &str, is_error: bool) {
    let level = if is_error { LogLevel::Error } else { LogLevel::Info };
    let text = text.strip_suffix('\n').unwrap_or(text).to_owned();
    if let Some(bridge) = state.try_borrow::<Bridge>() {
        bridge.send(FromIsolate::Log(LogRecord { level, text }));
    }
}
