//! What an extension cannot have: calls that would change the whole process, and on QuickJS what its
//! back end lacks, which without these replacements would end the process.

use deno_core::op2;
use deno_error::JsErrorBox;

/// User, group, priority and debugger are the host's.
#[op2(fast)]
pub fn op_tenon_process_wide() -> Result<(), JsErrorBox> {
    Err(JsErrorBox::generic(
        "not available to extensions: it would change the program that runs them",
    ))
}

/// Worker threads start from a snapshot, which QuickJS does not have.
#[cfg(feature = "quickjs")]
#[op2(fast)]
pub fn op_tenon_no_worker() -> Result<(), JsErrorBox> {
    Err(unavailable("worker threads"))
}

/// The contexts of `node:vm` are made from the snapshot too.
#[cfg(feature = "quickjs")]
#[op2(fast)]
pub fn op_tenon_no_context() -> Result<(), JsErrorBox> {
    Err(unavailable("contexts of node:vm"))
}

#[cfg(feature = "quickjs")]
fn unavailable(what: &str) -> JsErrorBox {
    JsErrorBox::generic(format!("{what} are not available on the QuickJS engine; they need V8"))
}

/// Does nothing: what Deno tells a debugger.
#[op2(fast)]
pub fn op_tenon_unheard() {}

/// Refuses to take over a socket by its number, as a bad descriptor.
#[op2(fast)]
pub fn op_tenon_no_foreign_socket() -> Result<(), std::io::Error> {
    Err(std::io::Error::from_raw_os_error(libc::EBADF))
}
