//! Whether the process at the other end of a socket may do as much as this one.
//!
//! A confined process of the same user must not give orders to one that is not confined. Mounts keep it away from the
//! sockets where there are any; this holds everywhere, because no process gets rid of its filters or its `no_new_privs`.

use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;

/// `SO_PEERPIDFD`, since Linux 6.5; newer than the C library's crate.
const SO_PEERPIDFD: libc::c_int = 77;

/// Why a peer is not served.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The system does not say who it is, or what it may do.
    #[error("the system does not say what the process at the other end may do: {0}")]
    Unknown(#[from] io::Error),
    /// It is another user's.
    #[error("the process at the other end is another user's")]
    OtherUser,
    /// It is confined, and this process is not, or less.
    #[error("the process at the other end is confined, and this one is not")]
    Confined,
}

/// What a process can never get rid of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Confinement {
    no_new_privs: bool,
    filters: u32,
}

/// Refuses a peer of another user, and one that is confined further than this process. Both are as they were when the
/// connection was made.
pub fn check(socket: &impl AsFd) -> Result<(), Refused> {
    let socket = socket.as_fd().as_raw_fd();
    let mut peer = libc::ucred { pid: 0, uid: u32::MAX, gid: 0 };
    ask(socket, libc::SO_PEERCRED, &mut peer)?;
    // SAFETY: cannot fail.
    if peer.uid != unsafe { libc::geteuid() } {
        return Err(Refused::OtherUser);
    }
    if peer.pid <= 0 {
        // It is in a namespace that this process does not see into.
        return Err(Refused::Unknown(io::ErrorKind::NotFound.into()));
    }
    let handle = handle(socket)?;
    let its = confinement(&format!("/proc/{}/status", peer.pid))?;
    // Its number may have become another's before its status was read.
    if handle.is_some_and(|handle| has_ended(&handle)) {
        return Err(Refused::Unknown(io::Error::other("it has ended")));
    }
    let own = confinement("/proc/self/status")?;
    if its.goes_beyond(own) { Err(Refused::Confined) } else { Ok(()) }
}

/// Whether a process is confined further than this one. One that has ended is not.
pub fn is_confined_further(process: i32) -> bool {
    let its = confinement(&format!("/proc/{process}/status"));
    let own = confinement("/proc/self/status");
    its.is_ok_and(|its| own.is_ok_and(|own| its.goes_beyond(own)))
}

/// This process's own confinement as text: processes with different ones should not share anything.
pub fn own_confinement() -> String {
    format!("{:?}", confinement("/proc/self/status").ok())
}

impl Confinement {
    fn goes_beyond(self, other: Self) -> bool {
        self.filters > other.filters || self.no_new_privs && !other.no_new_privs
    }

    fn parse(status: &str) -> Option<Self> {
        let number = |name: &str| -> Option<u32> {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.strip_prefix(':')?.trim().parse().ok()
        };
        // Before Linux 5.9 there is no count, only whether there are any.
        let filters = number("Seccomp_filters").or_else(|| number("Seccomp"))?;
        Some(Self { no_new_privs: number("NoNewPrivs")? != 0, filters })
    }
}

fn confinement(path: &str) -> io::Result<Confinement> {
    let status = fs::read_to_string(path)?;
    Confinement::parse(&status).ok_or_else(|| io::Error::other("its status has another form"))
}

/// The process itself instead of its number, where the system has that.
fn handle(socket: RawFd) -> io::Result<Option<OwnedFd>> {
    let mut descriptor: RawFd = -1;
    match ask(socket, SO_PEERPIDFD, &mut descriptor) {
        // SAFETY: the kernel has just made it, and nobody else knows it.
        Ok(()) => Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) })),
        Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn has_ended(process: &OwnedFd) -> bool {
    let mut waiting = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one structure of ours, and no waiting.
    unsafe { libc::poll(&raw mut waiting, 1, 0) != 0 }
}

fn ask<T>(socket: RawFd, what: libc::c_int, answer: &mut T) -> io::Result<()> {
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: the kernel writes at most as much as the size says, and both kinds asked for here are plain numbers.
    let asked = unsafe {
        let answer = std::ptr::from_mut(answer).cast();
        libc::getsockopt(socket, libc::SOL_SOCKET, what, answer, &raw mut size)
    };
    if asked == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_peer_like_oneself_is_served() {
        let (one, _other) = UnixStream::pair().unwrap();
        check(&one).unwrap();
    }

    #[test]
    fn more_filters_or_fewer_privileges_are_confinement() {
        let of = |status: &str| Confinement::parse(status).unwrap();
        let free = of("NoNewPrivs:\t0\nSeccomp:\t0\nSeccomp_filters:\t0\n");
        let container = of("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n");
        let inside = of("NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n");
        let old = of("NoNewPrivs:\t0\nSeccomp:\t2\n");
        assert!(
            container.goes_beyond(free) && inside.goes_beyond(container) && old.goes_beyond(free)
        );
        for same in [free, container, inside, old] {
            assert!(!same.goes_beyond(same));
        }
        assert!(!free.goes_beyond(container));
        assert_eq!(Confinement::parse("Name:\tx\n"), None);
    }
}
