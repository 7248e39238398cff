//! What the QuickJS back end does not have. Asking for it is an error of the extension; without these
//! replacements it would end the process.

use deno_core::op2;
use deno_error::JsErrorBox;

/// Worker threads start from a snapshot, which QuickJS does not have.
#[op2(fast)]
pub fn op_tenon_no_worker() -> Result<(), JsErrorBox> {
    Err(unavailable("worker threads"))
}

/// The contexts of `node:vm` are made from the snapshot too.
#[op2(fast)]
pub fn op_tenon_no_context() -> Result<(), JsErrorBox> {
    Err(unavailable("contexts of node:vm"))
}

fn unavailable(what: &str) -> JsErrorBox {
    JsErrorBox::generic(format!("{what} are not available on the QuickJS engine; they need V8"))
}
