//! Which layers the system has, without changing the process that asks.

use std::io;

use crate::Layers;
use crate::landlock_rules;
use crate::mounts;
use crate::namespace;
use crate::namespace::Identity;

/// What the system has.
pub fn available() -> Layers {
    Layers {
        landlock_abi: landlock_rules::abi(),
        mount_namespace: namespaces_work(),
        seccomp: seccomp_works(),
        // SAFETY: takes numbers only.
        no_new_privs: unsafe { libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) } >= 0,
        unrestricted: false,
        control_group: None,
        notes: Vec::new(),
    }
}

/// How many threads this process has; 1 if it is not known.
pub fn threads() -> u64 {
    use std::os::unix::fs::MetadataExt;
    // A folder's count of links: one for itself, one for its name, one for each folder in it.
    std::fs::metadata("/proc/self/task").map_or(1, |tasks| tasks.nlink().saturating_sub(2).max(1))
}

fn seccomp_works() -> bool {
    let action: u32 = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number.
    let answer = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action)
    };
    answer == 0
}

/// Tries it in a child, because there is no way back.
fn namespaces_work() -> bool {
    let identity = Identity::current();
    // SAFETY: the child of what may be many threads makes system calls only, allocates nothing, and ends
    // without running anything that was registered for the end.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // The maps of a namespace can be written only by a process that is not closed to others; ours may be. This one
        // holds nothing that the caller does not show it, and ends at once.
        // SAFETY: takes numbers only.
        unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0) };
        let works = namespace::enter(&identity).is_ok() && mounts::detach_from_system().is_ok();
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!works)) };
    }
    if child < 0 {
        return false;
    }
    let mut status = 0;
    loop {
        // SAFETY: waits for the child just made, and the kernel writes one number.
        let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if waited == child {
            return libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return false;
        }
    }
}
