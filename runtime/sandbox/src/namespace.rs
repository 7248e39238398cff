//! A user namespace with a mount namespace in it, and one for shared memory and messages where the system has these.

use std::ffi::CStr;
use std::io;

/// The process's own user and group, mapped to themselves. All other owners appear as nobody.
///
/// Made before [`enter`], which must not allocate: the probe runs it after a fork.
pub struct Identity {
    user: String,
    group: String,
}

impl Identity {
    pub fn current() -> Self {
        // SAFETY: neither call can fail or touches memory.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }
}

/// Moves this process, which has one thread, into new namespaces. It is the same user there, with all
/// capabilities over the new namespaces and none over the system.
pub fn enter(identity: &Identity) -> io::Result<()> {
    // SAFETY: takes flags only.
    if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNS) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // Belt and braces: the filter on system calls refuses shared memory and messages, too.
    // SAFETY: takes flags only.
    unsafe { libc::unshare(libc::CLONE_NEWIPC) };
    // Without this an unprivileged process may not map its group: by dropping a group it could get at
    // files that are closed to that group.
    put(c"/proc/self/setgroups", b"deny")?;
    put(c"/proc/self/uid_map", identity.user.as_bytes())?;
    put(c"/proc/self/gid_map", identity.group.as_bytes())
}

/// Moves this process into a new mount namespace only, which takes CAP_SYS_ADMIN.
pub fn enter_as_root() -> io::Result<()> {
    // SAFETY: takes flags only.
    match unsafe { libc::unshare(libc::CLONE_NEWNS) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn put(path: &CStr, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the path ends with a null byte, the length is the slice's, and the descriptor is closed by
    // nobody else.
    let written = unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return Err(io::Error::last_os_error());
        }
        let written = libc::write(file, bytes.as_ptr().cast(), bytes.len());
        let error = io::Error::last_os_error();
        libc::close(file);
        if written < 0 { Err(error) } else { Ok(written) }
    };
    written.map(drop)
}
