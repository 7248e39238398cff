//! Threads that keep a processor busy let those go first that only answer a call now and then.

use crate::limits::BUSY_NICENESS;

/// Lowers the priority of every thread but the calling one. Called when only the engine's own helpers
/// exist: what they do can wait for what an extension does.
pub fn lower_other_threads() {
    #[cfg(target_os = "linux")]
    {
        let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return };
        let own = crate::children::current_thread();
        threads
            .flatten()
            .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
            .filter(|&thread| thread != own)
            .for_each(lower);
    }
}

/// Lowers the priority of a thread.
pub fn lower(thread: i32) {
    set(thread, BUSY_NICENESS);
}

/// Gives a thread its usual priority back. Not every system lets us; it then keeps the lower one, which
/// counts only while others want the processor.
pub fn restore(thread: i32) {
    set(thread, 0);
}

#[cfg(target_os = "linux")]
fn set(thread: i32, niceness: i32) {
    // SAFETY: setpriority takes three integers; a thread that has ended is an error without consequence.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, thread.cast_unsigned(), niceness) };
}

/// Only Linux has priorities of single threads.
#[cfg(not(target_os = "linux"))]
fn set(_thread: i32, _niceness: i32) {}
