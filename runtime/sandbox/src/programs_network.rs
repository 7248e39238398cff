//! No network for the programs of a process that itself has some: which hosts it may reach is checked where it looks for
//! them, and its programs would ask nobody.
//!
//! Filters on system calls are inherited and cannot be taken back, so this one is put in force between the fork and the
//! start of a program: by a handler that the C library calls in the copy. It calls none for `posix_spawn` and `vfork`, so
//! whoever starts programs has to fork.

use std::io::Error;
use std::sync::OnceLock;

use seccompiler::BpfProgram;

use crate::error::SandboxError;
use crate::layers::Layer;
use crate::system_calls;

/// The filter, made before it is needed: nothing may be allocated in a copy of a process with several threads.
static FILTER: OnceLock<BpfProgram> = OnceLock::new();

/// From now on every copy that this process makes of itself has no network, nor has what it starts. It must have given up the
/// right to gain privileges.
pub fn forbid() -> Result<(), SandboxError> {
    if FILTER.set(system_calls::without_network()?).is_err() {
        return Ok(());
    }
    // SAFETY: the handler is safe where signal handlers are: it reads a value that stays as it is, and makes system calls.
    match unsafe { libc::pthread_atfork(None, None, Some(take_network)) } {
        0 => Ok(()),
        number => {
            let error = Error::from_raw_os_error(number);
            Err(SandboxError::failed(Layer::SystemCalls, "keep the network from programs", error))
        }
    }
}

unsafe extern "C" fn take_network() {
    let Some(filter) = FILTER.get() else { return };
    let program = libc::sock_fprog {
        len: filter.len() as libc::c_ushort,
        // The same structure by another name. The system only reads it.
        filter: filter.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the program outlives the call, which copies it; `_exit` takes a number and does not return.
    unsafe {
        if libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) != 0 {
            libc::_exit(NOT_STARTED);
        }
    }
}

/// The exit code of a copy from which the network could not be taken, as of a program that a shell cannot start.
const NOT_STARTED: libc::c_int = 126;
