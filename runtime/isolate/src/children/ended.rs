//! Processes that have ended and that nobody has waited for yet, and which of them are nobody's to wait for.

use std::fs;

use super::of_this_thread;

/// Whether a process has ended; one that nobody knows any more has.
pub fn has_ended(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name before the state may contain anything.
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['Z', 'X']))
}

/// Reaps the processes that the calling thread has adopted and that have ended. Those that somebody waits for are left alone:
/// tokio holds a descriptor for each, and whoever waits without one holds the thread as long, so that it does not get
/// here.
pub fn reap_adopted() {
    let ended: Vec<i32> = of_this_thread().into_iter().filter(|&child| has_ended(child)).collect();
    if ended.is_empty() {
        return;
    }
    let Some(awaited) = awaited() else { return };
    for process in ended.into_iter().filter(|process| !awaited.contains(process)) {
        // SAFETY: all that is asked for is that the system forgets the process.
        unsafe {
            libc::waitpid(process, std::ptr::null_mut(), libc::WNOHANG | libc::__WNOTHREAD);
        }
    }
}

/// The processes that this one holds descriptors of.
fn awaited() -> Option<Vec<i32>> {
    let process_of = |file: fs::DirEntry| -> Option<i32> {
        let text = fs::read_to_string(file.path()).ok()?;
        text.lines().find_map(|line| line.strip_prefix("Pid:"))?.trim().parse().ok()
    };
    Some(fs::read_dir("/proc/self/fdinfo").ok()?.flatten().filter_map(process_of).collect())
}

/// Whether the system has descriptors for processes, since Linux 5.3: without them nobody can tell which processes are
/// waited for.
pub fn are_distinguishable() -> bool {
    // SAFETY: the call takes two integers, and gives a new descriptor, which is closed at once.
    unsafe {
        let descriptor = libc::syscall(libc::SYS_pidfd_open, libc::getpid(), 0);
        i32::try_from(descriptor).is_ok_and(|file| file >= 0 && libc::close(file) == 0)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    fn until(holds: impl Fn() -> bool) {
        while !holds() {
            std::thread::yield_now();
        }
    }

    #[test]
    #[allow(clippy::zombie_processes, reason = "it is what the test is about")]
    fn what_somebody_waits_for_is_not_reaped_and_what_nobody_does_is() {
        // The processes of other tests are other threads'.
        std::thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let runtime = runtime.unwrap();
            let _inside = runtime.enter();
            let mut awaited = tokio::process::Command::new("sh").args(["-c", "exit 7"]).spawn();
            let awaited = awaited.as_mut().unwrap();
            let number = awaited.id().unwrap().cast_signed();
            // Nobody waits for it once the value is gone, as for one that was adopted.
            let forgotten = Command::new("true").stdin(Stdio::null()).spawn().unwrap().id();
            let forgotten = forgotten.cast_signed();
            until(|| has_ended(number) && has_ended(forgotten));
            reap_adopted();
            assert_eq!(of_this_thread(), [number]);
            assert_eq!(runtime.block_on(awaited.wait()).unwrap().code(), Some(7));
            assert!(of_this_thread().is_empty());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_process_that_runs_has_not_ended() {
        assert!(!has_ended(std::process::id().cast_signed()));
        assert!(has_ended(i32::MAX));
    }
}
