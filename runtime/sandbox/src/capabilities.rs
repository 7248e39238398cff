//! Giving up the powers of root.

use std::io;

/// The version of the interface with 64 capabilities, `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;

/// More than there are; the kernel says at which number they end.
const NUMBERS: u64 = 64;

/// What root keeps where it is confined without a user namespace: its power over other users' files,
/// which Landlock limits, and ports below 1024. Anything else acts on the system as a whole.
pub const FILES_AND_PORTS: u64 = 1 << CHOWN
    | 1 << DAC_OVERRIDE
    | 1 << DAC_READ_SEARCH
    | 1 << FOWNER
    | 1 << FSETID
    | 1 << NET_BIND_SERVICE;

/// Nothing: for a process that got all its capabilities with its user namespace.
pub const NOTHING: u64 = 0;

const CHOWN: u32 = 0;
const DAC_OVERRIDE: u32 = 1;
const DAC_READ_SEARCH: u32 = 2;
const FOWNER: u32 = 3;
const FSETID: u32 = 4;
const NET_BIND_SERVICE: u32 = 10;
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

/// Gives up every capability that is not in `kept`. The process has `no_new_privs`, so that no program it
/// starts gets one back, not even as root.
pub fn keep_only(kept: u64) -> io::Result<()> {
    let mut sets = current()?;
    if sets.iter().all(|half| half.permitted == 0 && half.inheritable == 0) {
        return Ok(());
    }
    for number in (0..NUMBERS).filter(|number| kept & (1 << number) == 0) {
        // SAFETY: takes numbers only. Without CAP_SETPCAP it fails, and there is nothing worth more then
        // than the sets below; the first unknown number ends the list.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0, 0, 0) };
        if dropped != 0 {
            break;
        }
    }
    for (half, kept) in sets.iter_mut().zip([kept as u32, (kept >> 32) as u32]) {
        half.effective &= kept;
        half.permitted &= kept;
        // Also empties the ambient set, which is part of this one.
        half.inheritable = 0;
    }
    let header = Header { version: VERSION, pid: 0 };
    // SAFETY: the kernel reads one header and, for this version, two halves.
    match unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The capabilities that this process has or can acquire.
pub fn permitted() -> u64 {
    let sets = current().unwrap_or_default();
    u64::from(sets[0].permitted) | u64::from(sets[1].permitted) << 32
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
