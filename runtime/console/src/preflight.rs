//! What the program needs of the system before it starts anything: threads, descriptors, sockets.
//!
//! Libraries below this one panic, or wait for ever, when the system refuses one of these halfway. So it is tried out
//! first, all at once, and a refusal is one clear error.

use std::fs::File;
use std::io::Error;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::error::CliError;
use crate::output;

/// Threads and processes that a session with one extension has at least, beside the main thread: the event loop's, one for
/// files, one for logs, the zygote's two, the extension's two to four. The limit counts them all.
const THREADS: usize = 12;

/// Those that a front and an agent add. An agent that gets fewer may hang, and nobody could tell why.
const AGENT_THREADS: usize = 12;

/// Descriptors that a session with one extension opens at least.
const DESCRIPTORS: usize = 24;

/// Enough for a thread that does nothing, in bytes.
const STACK: usize = 64 * 1024;

/// The most threads for blocking work, such as reading files; more work waits. They stay, so there are few.
const BLOCKING_THREADS: usize = 16;

/// How long a thread for blocking work lives without work. One must always be there: when the system refuses a new one,
/// the event loop gives the work to that one, and panics if there is none.
const KEPT: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What every command needs: limits that leave it room, standard output, and an event loop.
pub fn prepare(has_agent: bool) -> Result<Runtime, CliError> {
    check(has_agent)?;
    output::claim_stdout()
        .map_err(|error| CliError::new(format!("standard output cannot be set up: {error}")))?;
    event_loop()
}

/// Tries out whether the system gives what a command needs.
fn check(has_agent: bool) -> Result<(), CliError> {
    descriptors().map_err(|(had, error)| {
        CliError::new(format!(
            "only {had} of the {DESCRIPTORS} files that tenon needs can be opened: {error}"
        ))
        .hint("raise the limit of open files: ulimit -n 1024")
    })?;
    UnixStream::pair().map_err(|error| {
        CliError::new(format!("the system refuses a pair of sockets: {error}")).hint(
            "check whether a seccomp filter, for example of a container, forbids `socketpair`",
        )
    })?;
    let needed = if has_agent { THREADS + AGENT_THREADS } else { THREADS };
    threads(needed).map_err(|(had, error)| {
        CliError::new(format!("only {had} of the {needed} threads that tenon needs can be started: {error}"))
            .hint("raise the limit of processes (ulimit -u, or pids.max of the control group), or end some")
    })
}

/// Opens as many descriptors as are needed; the error with how many there were.
fn descriptors() -> Result<(), (usize, Error)> {
    let mut open = Vec::with_capacity(DESCRIPTORS);
    while open.len() < DESCRIPTORS {
        match File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) => return Err((open.len(), error)),
        }
    }
    Ok(())
}

/// Has as many threads as are needed at the same time; the error with how many there were.
fn threads(needed: usize) -> Result<(), (usize, Error)> {
    let gate = Arc::new(Mutex::new(()));
    // Each waits for the gate, so that none has ended when the last is started.
    let closed = gate.lock();
    let mut all = Vec::with_capacity(needed);
    let mut refused = None;
    while all.len() < needed && refused.is_none() {
        let gate = gate.clone();
        let thread = std::thread::Builder::new().stack_size(STACK);
        match thread.spawn(move || drop(gate.lock())) {
            Ok(thread) => all.push(thread),
            Err(error) => refused = Some((all.len(), error)),
        }
    }
    drop(closed);
    for thread in all {
        // It does nothing that could panic.
        let _ = thread.join();
    }
    refused.map_or(Ok(()), Err)
}

/// The program's event loop, with threads for blocking work that stay once they were needed.
fn event_loop() -> Result<Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_keep_alive(KEPT)
        .enable_all()
        .build()
        .map_err(|error| CliError::new(format!("no event loop could be started: {error}")))?;
    drop(runtime.spawn_blocking(|| {}));
    Ok(runtime)
}

/// Makes a write beyond the size that files may have (`ulimit -f`) an error. It would end the program without a word. A
/// handler, unlike ignoring the signal, is not inherited by other programs.
pub fn survive_file_limit() {
    extern "C" fn nothing(_signal: libc::c_int) {}
    // SAFETY: the handler does nothing, so it may interrupt anything; the structure is ours, and zero is a valid one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
        action.sa_flags = libc::SA_RESTART;
        libc::sigaction(libc::SIGXFSZ, &raw const action, std::ptr::null_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_system_gives_what_is_needed() {
        assert!(check(true).is_ok());
        assert_eq!(event_loop().unwrap().block_on(async { 1 }), 1);
    }
}
