//! Whether the system gives what the engine takes for granted: V8 aborts the process without it, and says nothing that a
//! person could act on.

use std::io::Error;

/// Address space that V8 reserves for all its heaps, with some for the rest of the process, in bytes.
const ADDRESS_SPACE: usize = if cfg!(feature = "v8") { 33 << 30 } else { 1 << 30 };

/// Tries out whether the engine can be booted.
pub fn check() -> std::io::Result<()> {
    reserve(ADDRESS_SPACE).map_err(|error| {
        let wanted = ADDRESS_SPACE >> 30;
        Error::other(format!(
            "the engine cannot reserve {wanted} GB of address space: {error}; raise the limit (`ulimit -v unlimited`), \
             which counts reserved and not only used memory"
        ))
    })?;
    let thread = std::thread::Builder::new().spawn(|| {}).map_err(|error| {
        Error::other(format!(
            "the engine cannot start a thread: {error}; raise the limit of processes (`ulimit -u`)"
        ))
    })?;
    // It is gone before the engine boots, so no fork meets it.
    thread.join().map_err(|_| Error::other("a thread that does nothing has panicked"))
}

/// Reserves address space, and gives it back.
fn reserve(size: usize) -> std::io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the system chooses a place where nothing is; nothing in it can be touched, and nobody else knows of it.
    unsafe {
        let place = libc::mmap(std::ptr::null_mut(), size, libc::PROT_NONE, flags, -1, 0);
        if place == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        libc::munmap(place, size);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_reserved_is_an_error() {
        assert!(reserve(1 << 20).is_ok());
        assert!(reserve(usize::MAX / 2).is_err());
    }
}
