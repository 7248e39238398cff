//! File descriptors as an extension sees them: those it opened itself.
//!
//! The numbers are the process's, and most of its descriptors are the host's or other extensions'. Deno
//! keeps a table of those that an isolate opened; `node:fs` asks it, and here so does what starts
//! children and makes sockets of descriptors.

use std::collections::HashSet;
use std::io;
use std::sync::OnceLock;

use deno_core::OpState;
use deno_core::op2;
use deno_runtime::deno_io::FdTable;

/// The descriptors that are not the extension's, whatever the table says: node's native classes take any number that the
/// table does not know for their own.
static OF_THE_RUNTIME: OnceLock<HashSet<i32>> = OnceLock::new();

/// How far descriptors are looked for. A process that was just forked has a few.
const MOST_OF_THE_RUNTIME: i32 = 1024;

/// Keeps all that is open from the extension that this process is about to run, but for its standard streams: the socket to the
/// session among it. To be called once, before the extension's code runs.
pub fn keep_what_is_open() {
    // SAFETY: it takes integers, and a number that is not open is an error.
    let is_open = |&number: &i32| unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0;
    // The first of them stay.
    let _ = OF_THE_RUNTIME.set((3..MOST_OF_THE_RUNTIME).filter(is_open).collect());
}

/// Whether the extension must not use a number.
#[op2(fast)]
pub fn op_tenon_is_of_the_runtime(#[smi] number: i32) -> bool {
    OF_THE_RUNTIME.get().is_some_and(|numbers| numbers.contains(&number))
}

/// The descriptor behind a number of the extension's: 0 to 2 are its own standard streams, not the
/// process's. A number that is not its own is a bad one.
#[op2(fast)]
#[smi]
pub fn op_tenon_descriptor(state: &mut OpState, #[smi] number: i32) -> Result<i32, io::Error> {
    let bad = || io::Error::from_raw_os_error(libc::EBADF);
    if OF_THE_RUNTIME.get().is_some_and(|numbers| numbers.contains(&number)) {
        return Err(bad());
    }
    let table = state.try_borrow::<FdTable>().ok_or_else(bad)?;
    match table.get(number) {
        Some(file) => file.clone().backing_fd().ok_or_else(bad),
        // A stream of the extension's has it, such as the output of a child.
        None if table.contains(number) => Ok(number),
        None => Err(bad()),
    }
}
