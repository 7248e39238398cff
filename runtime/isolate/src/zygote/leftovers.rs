//! What extensions leave behind when their processes end: the zygote adopts it, and ends it unless it may go on.
//!
//! An extension's process adopts its orphans while it lives, so whatever the zygote has adopted comes from one that has ended.
//! An extension that is not restricted may detach programs: they go on if it has ended in order. Everything else is killed here, as
//! far as its process has not done it. Where there are control groups, they have done it before.

use std::collections::BTreeSet;
use std::io::Error;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;

use tenon_protocol::peer;

use crate::children;

/// The signal of a child that has ended, kept from being delivered, so that it can be waited for beside everything else. Forks
/// have to call [`unblock`].
pub struct EndSignals(OwnedFd);

impl EndSignals {
    /// To be called before there are other threads: they inherit that the signal is kept.
    pub fn block() -> std::io::Result<Self> {
        let signals = child_signal();
        // SAFETY: the set is ours; the last call gives a new descriptor, which nobody else knows.
        unsafe {
            // Where whoever started the zygote ignores it, the system forgets children at their end, and how they ended.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            libc::sigprocmask(libc::SIG_BLOCK, &raw const signals, std::ptr::null_mut());
            let flags = libc::SFD_CLOEXEC | libc::SFD_NONBLOCK;
            match libc::signalfd(-1, &raw const signals, flags) {
                file if file >= 0 => Ok(Self(OwnedFd::from_raw_fd(file))),
                _ => {
                    let error = Error::last_os_error();
                    unblock();
                    Err(error)
                }
            }
        }
    }

    /// Whether a child has ended since it was last asked.
    pub fn take(&self) -> bool {
        let mut signal = [0_u8; size_of::<libc::signalfd_siginfo>()];
        // SAFETY: the memory is ours and has the given size. Signals of one kind are one while they wait.
        let read =
            unsafe { libc::read(self.0.as_raw_fd(), signal.as_mut_ptr().cast(), signal.len()) };
        read > 0
    }
}

impl AsFd for EndSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Lets the signal be delivered again, in a fork.
pub fn unblock() {
    let signals = child_signal();
    // SAFETY: the set is ours.
    unsafe { libc::sigprocmask(libc::SIG_UNBLOCK, &raw const signals, std::ptr::null_mut()) };
}

fn child_signal() -> libc::sigset_t {
    // SAFETY: the set is made by the first call and changed by the second.
    unsafe {
        let mut signals = std::mem::zeroed();
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGCHLD);
        signals
    }
}

/// How extensions have ended since it was last looked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ends {
    /// One has ended whose detached programs may go on.
    pub in_order: bool,
    /// One has ended of which nothing may.
    pub otherwise: bool,
}

/// The adopted processes.
#[derive(Default)]
pub struct Leftovers {
    /// Were killed, and are still to be reaped.
    doomed: BTreeSet<i32>,
    /// May go on.
    staying: BTreeSet<i32>,
}

impl Leftovers {
    /// Reaps what has ended, and decides about what is new. `is_own` says which children are processes of extensions.
    pub fn sweep(&mut self, ends: Ends, is_own: impl Fn(i32) -> bool) {
        // What one of these has left behind comes in this sweep, or in that of its own end.
        let before = Origins {
            ended_in_order: ends.in_order,
            ended_otherwise: ends.otherwise,
            doomed: !self.doomed.is_empty(),
            staying: !self.staying.is_empty(),
        };
        // Each process that is reaped may have left others.
        while self.pass(before, &is_own) {}
    }

    /// Whether something was killed and has not been reaped: it may still leave others behind.
    pub fn are_ending(&self) -> bool {
        !self.doomed.is_empty()
    }

    /// Whether anything was reaped.
    fn pass(&mut self, mut origins: Origins, is_own: impl Fn(i32) -> bool) -> bool {
        let mut has_reaped = false;
        for process in children::of_this_thread().into_iter().filter(|&child| !is_own(child)) {
            // SAFETY: all that is asked for is that the system forgets the process.
            let reaped = unsafe { libc::waitpid(process, std::ptr::null_mut(), libc::WNOHANG) };
            if reaped != 0 {
                self.doomed.remove(&process);
                self.staying.remove(&process);
                has_reaped = true;
            } else if !self.doomed.contains(&process) && !self.staying.contains(&process) {
                origins.doomed |= !self.doomed.is_empty();
                origins.staying |= !self.staying.is_empty();
                if origins.may_stay(|| peer::is_confined_further(process)) {
                    self.staying.insert(process);
                } else {
                    self.doomed.insert(process);
                    children::kill_tree(process);
                }
            }
        }
        has_reaped
    }
}

/// Whose an adopted process may have been.
#[derive(Debug, Clone, Copy, Default)]
struct Origins {
    ended_in_order: bool,
    ended_otherwise: bool,
    doomed: bool,
    staying: bool,
}

impl Origins {
    /// Whether an adopted process may go on. Where it may have been of one kind or the other, its confinement tells: that of a
    /// restricted extension is confined further than the zygote, and cannot get rid of that.
    fn may_stay(self, is_confined: impl Fn() -> bool) -> bool {
        // An extension that ends explains what comes better than something that ended before it.
        let (one_to_stay, one_to_end) = if self.ended_in_order || self.ended_otherwise {
            (self.ended_in_order, self.ended_otherwise || self.doomed)
        } else {
            (self.staying, self.doomed)
        };
        match (one_to_stay, one_to_end) {
            (true, false) => true,
            (false, true) => false,
            (true, true) | (false, false) => !is_confined(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_waited_for_also_where_its_signal_was_ignored() {
        // SAFETY: numbers only.
        unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
        let signals = EndSignals::block().unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        assert!(child.wait().unwrap().success());
        drop(signals);
        unblock();
    }

    #[test]
    fn what_is_left_behind_stays_only_after_an_end_in_order() {
        let none = Origins::default();
        let in_order = Origins { ended_in_order: true, ..none };
        let otherwise = Origins { ended_otherwise: true, ..none };
        for confined in [false, true] {
            assert!(in_order.may_stay(|| confined));
            assert!(!otherwise.may_stay(|| confined));
            assert!(!Origins { staying: true, ..otherwise }.may_stay(|| confined));
            // Children of what stays, and of what was killed.
            assert!(Origins { staying: true, ..none }.may_stay(|| confined));
            assert!(!Origins { doomed: true, ..none }.may_stay(|| confined));
            // Where it may be either, or nobody knows.
            let both = [
                none,
                Origins { ended_otherwise: true, ..in_order },
                Origins { doomed: true, ..in_order },
                Origins { doomed: true, staying: true, ..none },
            ];
            assert!(both.iter().all(|both| both.may_stay(|| confined) != confined));
        }
    }
}
