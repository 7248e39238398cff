//! The processes an extension has started: how many there are, and that they end with it.
//!
//! Node leaves them behind. Here an extension is reloaded many times in the life of one process, so
//! what generation n started and did not detach is killed when n ends.

/// The operating system's identity of the calling thread, which forks for its extension.
#[cfg(target_os = "linux")]
pub fn current_thread() -> i32 {
    // SAFETY: gettid has no arguments and cannot fail.
    unsafe { libc::gettid() }
}

/// A number for the calling thread that no other has.
#[cfg(not(target_os = "linux"))]
pub fn current_thread() -> i32 {
    use std::sync::atomic::AtomicI32;
    use std::sync::atomic::Ordering::Relaxed;
    static NEXT: AtomicI32 = AtomicI32::new(1);
    thread_local! {
        static NUMBER: i32 = NEXT.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// Counts the processes that threads have started, detached or not, with their descendants; no further than
/// one above `most`. A process whose parent has ended is nobody's and is not found.
#[cfg(target_os = "linux")]
pub fn count(threads: &[i32], most: usize) -> usize {
    let own = std::process::id().cast_signed();
    let mut found: Vec<i32> = threads.iter().flat_map(|&thread| children_of(own, thread)).collect();
    let mut next = 0;
    while found.len() <= most
        && let Some(&process) = found.get(next)
    {
        found.extend(children_of_all_threads(process));
        next += 1;
    }
    found.len().min(most + 1)
}

/// Only Linux says which thread started which process.
#[cfg(not(target_os = "linux"))]
pub fn count(_threads: &[i32], _most: usize) -> usize {
    0
}

/// Kills the processes that a thread has started, with their descendants, except those that were
/// started detached: they have a process group of their own and are meant to outlive us.
#[cfg(target_os = "linux")]
pub fn kill_all(thread: i32) {
    for child in children_of(std::process::id().cast_signed(), thread) {
        if process_group(child) != Some(child) {
            kill_tree(child);
        }
    }
}

/// Only Linux says which thread started which process.
#[cfg(not(target_os = "linux"))]
pub fn kill_all(_thread: i32) {}

/// Kills the processes that a thread has started, with their descendants, detached or not: there are too
/// many to leave any behind.
#[cfg(target_os = "linux")]
pub fn kill_even_detached(thread: i32) {
    children_of(std::process::id().cast_signed(), thread).into_iter().for_each(kill_tree);
}

/// Only Linux says which thread started which process.
#[cfg(not(target_os = "linux"))]
pub fn kill_even_detached(_thread: i32) {}

/// Kills a process, everything in its group, and what it has started and not detached.
#[cfg(target_os = "linux")]
pub fn kill_process(process: i32) {
    // SAFETY: kill takes two integers. The process is our own child and has not been waited for, so its number is its
    // own.
    let send = |process, signal| unsafe { libc::kill(process, signal) };
    send(process, libc::SIGSTOP);
    for child in children_of_all_threads(process) {
        if process_group(child) != Some(child) {
            kill_tree(child);
        }
    }
    send(-process, libc::SIGKILL);
    send(process, libc::SIGKILL);
}

#[cfg(target_os = "linux")]
fn kill_tree(process: i32) {
    // SAFETY: kill takes two integers. The process is our own descendant and has not been waited
    // for, so its number cannot have been given to another.
    let send = |signal| unsafe { libc::kill(process, signal) };
    // One that is stopped starts no more children while they are listed.
    send(libc::SIGSTOP);
    // Children first: once their parent is gone they are somebody else's.
    children_of_all_threads(process).into_iter().for_each(kill_tree);
    send(libc::SIGKILL);
}

#[cfg(target_os = "linux")]
fn children_of_all_threads(process: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    threads
        .flatten()
        .filter_map(|thread| thread.file_name().to_str()?.parse().ok())
        .flat_map(|thread| children_of(process, thread))
        .collect()
}

#[cfg(target_os = "linux")]
fn children_of(process: i32, thread: i32) -> Vec<i32> {
    std::fs::read_to_string(format!("/proc/{process}/task/{thread}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect()
}

#[cfg(target_os = "linux")]
fn process_group(process: i32) -> Option<i32> {
    // SAFETY: getpgid takes an integer and touches no memory of ours.
    let group = unsafe { libc::getpgid(process) };
    (group > 0).then_some(group)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn processes_are_counted_with_their_descendants_up_to_the_limit() {
        std::thread::spawn(|| {
            let own = [current_thread()];
            assert_eq!(count(&own, 10), 0);
            let mut shell = Command::new("sh")
                .args(["-c", "sleep 60 & sleep 60 & echo; wait"])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut detached = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
            // The shell says when it has started its own.
            let mut said = [0];
            std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut said).unwrap();
            assert_eq!(count(&own, 10), 4);
            assert_eq!(count(&own, 2), 3);
            kill_even_detached(own[0]);
            shell.wait().unwrap();
            assert!(!detached.wait().unwrap().success());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_threads_children_are_killed_but_not_detached_ones_or_anothers() {
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let (mut own, mut detached) = std::thread::spawn(|| {
            let mut own = Command::new("sh")
                .args(["-c", "sleep 60 & echo; wait"])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let detached = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
            // One that the shell starts only now would be left behind.
            let mut said = [0];
            std::io::Read::read_exact(own.stdout.as_mut().unwrap(), &mut said).unwrap();
            kill_all(current_thread());
            (own, detached)
        })
        .join()
        .unwrap();
        assert!(!own.wait().unwrap().success());
        assert!(detached.try_wait().unwrap().is_none());
        assert!(other.try_wait().unwrap().is_none());
        for child in [&mut other, &mut detached] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}
