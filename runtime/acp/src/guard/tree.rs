//! The processes below this one.

use std::collections::HashMap;

use rustix::process::Pid;
use rustix::process::Signal;
use rustix::process::kill_process;

/// A process as the system lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: i32,
    /// The number of its group.
    pub group: i32,
    parent: i32,
}

impl Process {
    /// Sends it a signal. One that has ended meanwhile does not mind.
    pub fn signal(self, signal: Signal) {
        // It is below us and was not waited for when it was listed; until its number could be given to another,
        // numbers would have to come round at once.
        let _ = Pid::from_raw(self.id).map(|id| kill_process(id, signal));
    }
}

/// Everybody below a process, children before grandchildren. Who is started meanwhile may be missing.
pub fn below(root: i32) -> Vec<Process> {
    descendants(root, &list())
}

#[cfg(target_os = "linux")]
fn list() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            parse(id, &std::fs::read_to_string(entry.path().join("stat")).ok()?)
        })
        .collect()
}

/// Elsewhere only the group is known.
#[cfg(not(target_os = "linux"))]
fn list() -> Vec<Process> {
    Vec::new()
}

/// Takes what is wanted from `/proc/ID/stat`. The name is in brackets and may contain anything.
#[cfg(any(target_os = "linux", test))]
fn parse(id: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let _state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    Some(Process { id, group, parent })
}

fn descendants(root: i32, all: &[Process]) -> Vec<Process> {
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = children.remove(&root).unwrap_or_default();
    let mut next = 0;
    // Each is taken out, so that a list that was made while numbers were given anew cannot go in circles.
    while let Some(process) = found.get(next) {
        if let Some(more) = children.remove(&process.id) {
            found.extend(more);
        }
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_brackets_confuses_nobody() {
        let line = "42 (a) S 1 2) (b) S 7 40 39 0 -1 4194304";
        assert_eq!(parse(42, line), Some(Process { id: 42, group: 40, parent: 7 }));
        assert_eq!(parse(1, "1 (init"), None);
        assert_eq!(parse(1, ""), None);
    }

    #[test]
    fn everybody_below_is_found_and_nobody_else() {
        let process = |id, parent| Process { id, group: id, parent };
        let all = [
            process(5, 3),
            process(3, 1),
            process(2, 1),
            process(4, 3),
            process(9, 8),
            process(6, 5),
        ];
        let ids = |root| descendants(root, &all).iter().map(|found| found.id).collect::<Vec<_>>();
        assert_eq!(ids(1), [3, 2, 5, 4, 6]);
        assert_eq!(ids(3), [5, 4, 6]);
        assert!(ids(7).is_empty());
        let circle = [process(1, 2), process(2, 1)];
        assert_eq!(descendants(1, &circle).len(), 2);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn processes_in_sessions_of_their_own_are_found() {
        use std::io::Read;
        use std::process::Command;
        use std::process::Stdio;
        let mut shell = Command::new("sh")
            .args(["-c", "setsid sleep 60 & sleep 60 & echo; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The shell says when it has started its own.
        let mut said = [0];
        shell.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        let root = shell.id().cast_signed();
        let found = below(root);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(below(std::process::id().cast_signed()).iter().any(|process| process.id == root));
        for process in found {
            process.signal(Signal::KILL);
        }
        shell.wait().unwrap();
        assert!(below(root).is_empty());
    }
}
