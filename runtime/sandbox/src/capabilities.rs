//! Giving up the powers of root, and those that come with a user namespace.

use std::io;

/// The version of the interface with 64 capabilities, `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;

/// More than there are; the kernel says at which number they end.
const NUMBERS: u64 = 64;

const SYS_ADMIN: u32 = 21;

#[repr(C)]
struct Header {
    version: u32,
    pid: i32,
}

/// 32 capabilities of each set; two of these make up all.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up every capability. The process has `no_new_privs`, so that no program it starts gets one back, not even as
/// root.
pub fn drop_all() -> io::Result<()> {
    let mut sets = current()?;
    if sets.iter().all(|half| half.permitted == 0 && half.inheritable == 0) {
        return Ok(());
    }
    for number in 0..NUMBERS {
        // SAFETY: takes numbers only. Without CAP_SETPCAP it fails, and there is nothing worth more then
        // than the sets below; the first unknown number ends the list.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
        if dropped != 0 {
            break;
        }
    }
    // The ambient set goes with them: it is part of the inheritable one.
    sets = [Sets::default(); 2];
    let header = Header { version: VERSION, pid: 0 };
    // SAFETY: the kernel reads one header and, for this version, two halves.
    match unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this process may mount.
pub fn may_mount() -> bool {
    current().is_ok_and(|sets| sets[0].effective & (1 << SYS_ADMIN) != 0)
}

fn current() -> io::Result<[Sets; 2]> {
    let header = Header { version: VERSION, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: the kernel reads one header and, for this version, fills two halves.
    match unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) } {
        0 => Ok(sets),
        _ => Err(io::Error::last_os_error()),
    }
}
