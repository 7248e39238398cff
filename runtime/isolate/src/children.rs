//! The processes an extension has started: how many there are, and that they end with it.
//!
//! Node leaves them behind. Here an extension is reloaded many times in the life of one process, so
//! what generation n started and did not detach is killed when n ends.
//!
//! An extension's own process adopts what its programs leave behind ([`adopt_orphans`]), so that a program whose parent has
//! ended is still found here.

#[cfg(target_os = "linux")]
mod ended;

#[cfg(target_os = "linux")]
use std::collections::HashSet;
#[cfg(target_os = "linux")]
use std::fs::File;
#[cfg(target_os = "linux")]
use std::io::Read;

#[cfg(target_os = "linux")]
pub use ended::are_distinguishable;
#[cfg(target_os = "linux")]
pub use ended::has_ended;
#[cfg(target_os = "linux")]
pub use ended::reap_adopted;

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

/// Makes processes below this one its own children when their parents end, those of its first thread. Forks of this process
/// do not inherit that. Whoever calls this has to reap them.
#[cfg(target_os = "linux")]
pub fn adopt_orphans() -> std::io::Result<()> {
    // SAFETY: prctl takes integers here.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// How many processes an extension has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Those that run.
    pub running: usize,
    /// Those that have ended, and that nobody has waited for.
    pub ended: usize,
}

/// The processes of an extension.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Those that run.
    pub running: Vec<i32>,
    /// How many have ended, and nobody has waited for them.
    pub ended: usize,
}

impl Found {
    /// How many there are.
    pub fn count(&self) -> Count {
        Count { running: self.running.len(), ended: self.ended }
    }
}

/// Finds the processes that threads have started, detached or not, with their descendants; no further than
/// one above `most`, or above [`MAX_ENDED_CHILDREN`](crate::limits::MAX_ENDED_CHILDREN) of those that have ended.
#[cfg(target_os = "linux")]
pub fn find(threads: &[i32], most: usize) -> Found {
    let own = std::process::id().cast_signed();
    let mut all: Vec<i32> = threads.iter().flat_map(|&thread| children_of(own, thread)).collect();
    let mut found = Found::default();
    let mut next = 0;
    while found.running.len() <= most
        && found.ended <= crate::limits::MAX_ENDED_CHILDREN
        && let Some(&process) = all.get(next)
    {
        next += 1;
        if has_ended(process) {
            found.ended += 1;
        } else {
            found.running.push(process);
            all.extend(children_of_all_threads(process));
        }
    }
    found
}

/// Only Linux says which thread started which process.
#[cfg(not(target_os = "linux"))]
pub fn find(_threads: &[i32], _most: usize) -> Found {
    Found::default()
}

/// Kills the processes that a thread has started, with their descendants, except those that were
/// started detached: they have a process group of their own and are meant to outlive us.
#[cfg(target_os = "linux")]
pub fn kill_all(thread: i32) {
    let own = std::process::id().cast_signed();
    let group = process_group(own);
    for child in children_of(own, thread) {
        if process_group(child) == group {
            kill_tree(child);
        }
    }
}

/// Only Linux says which thread started which process.
#[cfg(not(target_os = "linux"))]
pub fn kill_all(_thread: i32) {}

/// Kills the processes that a thread has started, with their descendants, detached or not: there are too
/// many to leave any behind, or none may outlive their extension.
#[cfg(target_os = "linux")]
pub fn kill_even_detached(thread: i32) {
    let own = std::process::id().cast_signed();
    kill_until_none_is_new(|| children_of(own, thread));
}

/// Kills what is found, with its descendants, until nothing is found that was not before: the system lists processes one by
/// one, and misses some where others come and go meanwhile. What is killed leaves others behind, too.
#[cfg(target_os = "linux")]
fn kill_until_none_is_new(find: impl Fn() -> Vec<i32>) {
    let mut killed = HashSet::new();
    for _ in 0..MAX_KILL_ROUNDS {
        let new: Vec<i32> = find().into_iter().filter(|&process| killed.insert(process)).collect();
        if new.is_empty() {
            return;
        }
        new.into_iter().for_each(kill_tree);
    }
}

/// How often processes are looked for that came while others were killed. One round finds nearly all, and the second none; one
/// that replaces itself all the time must not hold up the rest.
#[cfg(target_os = "linux")]
const MAX_KILL_ROUNDS: usize = 100;

/// Only Linux says which thread started which process.
#[cfg(not(target_os = "linux"))]
pub fn kill_even_detached(_thread: i32) {}

/// Kills a process that is the first of its group, everything in that group, and its descendants, detached or not.
#[cfg(target_os = "linux")]
pub fn kill_process(process: i32) {
    kill_tree(process);
    // SAFETY: kill takes two integers. The process is our own child and has not been waited for, so its number is its
    // own.
    unsafe { libc::kill(-process, libc::SIGKILL) };
}

/// Kills a process and its descendants.
#[cfg(target_os = "linux")]
pub fn kill_tree(process: i32) {
    // SAFETY: kill takes two integers. The process is our own descendant and has not been waited
    // for, so its number cannot have been given to another.
    let send = |signal| unsafe { libc::kill(process, signal) };
    // One that is stopped starts no more children while they are listed.
    send(libc::SIGSTOP);
    // Children first: once their parent is gone they are somebody else's. The signal may arrive a moment later.
    kill_until_none_is_new(|| children_of_all_threads(process));
    send(libc::SIGKILL);
}

/// The processes that the calling thread has started or adopted.
#[cfg(target_os = "linux")]
pub fn of_this_thread() -> Vec<i32> {
    children_of(std::process::id().cast_signed(), current_thread())
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
    let Ok(mut file) = File::open(format!("/proc/{process}/task/{thread}/children")) else {
        return Vec::new();
    };
    // In as few pieces as can be: between two, the system counts off those that it has listed, and skips as many as have
    // ended meanwhile.
    let mut text = vec![0; CHILDREN_PIECE_BYTES];
    let mut length = 0;
    while let Ok(count @ 1..) = file.read(&mut text[length..]) {
        length += count;
        if length == text.len() {
            text.resize(2 * length, 0);
        }
    }
    let text = String::from_utf8_lossy(&text[..length]);
    text.split_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// How much of a list of children is read at once, in bytes: the numbers of some hundred processes. The system gives as much
/// as fits on a page of memory.
#[cfg(target_os = "linux")]
const CHILDREN_PIECE_BYTES: usize = 4 * 1024;

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
            let count = |most| find(&own, most).count();
            assert_eq!(count(10), Count::default());
            let mut shell = Command::new("sh")
                .args(["-c", "sleep 60 & sleep 60 & echo; wait"])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut detached = Command::new("sleep").arg("60").process_group(0).spawn().unwrap();
            // The shell says when it has started its own.
            let mut said = [0];
            std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut said).unwrap();
            assert_eq!(count(10), Count { running: 4, ended: 0 });
            assert_eq!(count(2), Count { running: 3, ended: 0 });
            kill_even_detached(own[0]);
            while count(10) != (Count { running: 0, ended: 2 }) {
                std::thread::yield_now();
            }
            shell.wait().unwrap();
            assert!(!detached.wait().unwrap().success());
        })
        .join()
        .unwrap();
    }

    #[test]
    fn what_is_missed_or_appears_while_others_are_killed_is_killed_too() {
        let mut programs: Vec<_> =
            (0..3).map(|_| Command::new("sleep").arg("60").spawn().unwrap()).collect();
        let numbers: Vec<_> = programs.iter().map(|it| it.id().cast_signed()).collect();
        let listed = std::cell::Cell::new(0);
        kill_until_none_is_new(|| {
            listed.set(listed.get() + 1);
            numbers[..numbers.len().min(listed.get())].to_vec()
        });
        assert_eq!(listed.get(), numbers.len() + 1);
        assert!(programs.iter_mut().all(|it| !it.wait().unwrap().success()));
    }

    #[test]
    fn all_children_are_found_also_if_their_list_is_long() {
        std::thread::spawn(|| {
            let script = "i=0; while [ $i -lt 700 ]; do sleep 60 & i=$((i + 1)); done; echo; wait";
            let mut shell = Command::new("sh")
                .args(["-c", script])
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            std::io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0]).unwrap();
            let number = shell.id().cast_signed();
            assert_eq!(children_of(number, number).len(), 700);
            kill_even_detached(current_thread());
            assert!(!shell.wait().unwrap().success());
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
