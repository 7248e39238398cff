//! Forking, also into a control group.

use std::io::Error;
use std::os::fd::AsRawFd;

use tenon_sandbox::control_groups::Group;

use super::leftovers;

/// Where a fork has returned.
pub enum Forked {
    /// In the zygote, with the number of the new process.
    Zygote(i32),
    /// In the new process.
    Child {
        /// It is in the group that was given, so that the limits of the group hold.
        in_group: bool,
    },
}

/// Forks, into the given group if there is one and the system puts the new process there.
pub fn fork(group: Option<&Group>) -> std::io::Result<Forked> {
    let zygote = std::process::id();
    let forked = group.map(fork_into);
    let pid = match &forked {
        Some(Ok(pid)) => *pid,
        // An old kernel, or one that says no: what holds without a group holds all the same.
        // SAFETY: no other thread of this process ever holds a lock. The only other thread is the engine's, which waits for
        // work since it was started and never gets any. So the copy is consistent.
        None | Some(Err(_)) => unsafe { libc::fork() },
    };
    if pid < 0 {
        return Err(Error::last_os_error());
    }
    if pid == 0 {
        // SAFETY: these take and give integers.
        unsafe {
            libc::setpgid(0, 0);
            // Only the zygote can end this process for its session, so it must not outlive the zygote.
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid().cast_unsigned() != zygote {
                libc::_exit(1);
            }
        }
        leftovers::unblock();
        let join = || group.is_some_and(|group| group.join().is_ok());
        return Ok(Forked::Child {
            in_group: is_in_group(forked.is_some_and(|it| it.is_ok()), join),
        });
    }
    // Both do it, so that neither depends on who is first.
    // SAFETY: setpgid takes two integers.
    unsafe { libc::setpgid(pid, pid) };
    Ok(Forked::Zygote(pid))
}

/// Whether the new process is in its group: it was started there, or has joined. One that has not is limited by nothing of
/// the group, which is empty.
fn is_in_group(was_started_there: bool, join: impl FnOnce() -> bool) -> bool {
    was_started_there || join()
}

/// Forks into a group. The C library cannot do that, and to move a process afterwards takes the system more than ten milliseconds,
/// one after the other.
///
/// This makes the call that the library's own `fork` makes, with the group added: the library reads the number of the
/// thread at one place, where the system puts it. What else the library does after a fork is for programs of which other threads go on or
/// that have locks taken, and there are none; the handlers that it calls (`pthread_atfork`) are the random number generators',
/// which have not been used.
fn fork_into(group: &Group) -> std::io::Result<i32> {
    let mut place: *mut libc::pid_t = std::ptr::null_mut();
    // SAFETY: the system writes one address, into a variable of ours.
    if unsafe { libc::prctl(libc::PR_GET_TID_ADDRESS, &raw mut place) } != 0 || place.is_null() {
        return Err(Error::last_os_error());
    }
    let folder = group.open()?;
    // SAFETY: all-zero is valid: nothing is asked for.
    let mut wanted: libc::clone_args = unsafe { std::mem::zeroed() };
    wanted.flags =
        (libc::CLONE_CHILD_SETTID | libc::CLONE_CHILD_CLEARTID) as u64 | CLONE_INTO_CGROUP;
    wanted.child_tid = place as u64;
    wanted.exit_signal = libc::SIGCHLD as u64;
    wanted.cgroup = folder.as_raw_fd() as u64;
    // SAFETY: as for `fork`. The structure is ours and has the given size; no memory is shared with the new process, which goes on
    // on a copy of this stack. The system writes at `place` in the new process alone.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone3, &raw mut wanted, size_of::<libc::clone_args>()) };
    if pid < 0 { Err(Error::last_os_error()) } else { Ok(pid as i32) }
}

/// Starts the process in the group whose folder is given. Since Linux 5.7.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_could_not_join_its_group_is_not_in_it() {
        assert!(is_in_group(true, || unreachable!("it is there")));
        assert!(is_in_group(false, || true));
        assert!(!is_in_group(false, || false));
    }
}
