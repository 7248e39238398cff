//! Worker threads need a snapshot to start from, which QuickJS does not have.

use deno_core::op2;
use deno_error::JsErrorBox;

/// Says so instead of starting one.
#[op2(fast)]
pub fn op_tenon_no_worker() -> Result<(), JsErrorBox> {
    Err(JsErrorBox::generic("worker threads are not available on the QuickJS engine; they need V8"))
}
