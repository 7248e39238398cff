//! File descriptors as an extension sees them: those it opened itself.
//!
//! The numbers are the process's, and most of its descriptors are the host's or other extensions'. Deno
//! keeps a table of those that an isolate opened; `node:fs` asks it, and here so does what starts
//! children and makes sockets of descriptors.

use std::io;

use deno_core::OpState;
use deno_core::op2;
use deno_runtime::deno_io::FdTable;

/// The descriptor behind a number of the extension's: 0 to 2 are its own standard streams, not the
/// process's. A number that is not its own is a bad one.
#[op2(fast)]
#[smi]
pub fn op_tenon_descriptor(state: &mut OpState, #[smi] number: i32) -> Result<i32, io::Error> {
    let bad = || io::Error::from_raw_os_error(libc::EBADF);
    let table = state.try_borrow::<FdTable>().ok_or_else(bad)?;
    match table.get(number) {
        Some(file) => file.clone().backing_fd().ok_or_else(bad),
        // A stream of the extension's has it, such as the output of a child.
        None if table.contains(number) => Ok(number),
        None => Err(bad()),
    }
}
