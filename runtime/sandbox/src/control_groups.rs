//! Control groups (version 2): one for each extension, with all that it starts, where the system has delegated a part of the
//! hierarchy to us.
//!
//! The kernel then counts memory and processes of the whole group, whatever becomes whose child, and ends all of it at once.
//! Where nothing is delegated nothing is touched: everything here is an addition to limits that hold without it.
//!
//! ```text
//! BASE                    what was delegated: the group that the session was started in
//! BASE/tenon-session      the session, the zygote, the agent: a group with limits for its children may have no processes itself
//! BASE/tenon-zygote-P-N   of one zygote, which holds a lock on the folder as long as it lives
//! BASE/tenon-zygote-P-N/E of one extension
//! ```

mod place;

use std::fs::File;
use std::fs::TryLockError;
use std::io;
use std::io::Read;
use std::io::Seek;
use std::os::fd::AsFd;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::path::PathBuf;

use tenon_protocol::layers::ControlGroup;

pub use place::Missing;
use place::Place;

/// The group of the session and the zygote, below the one that was delegated.
const LEAF: &str = "tenon-session";

/// What the name of a zygote's group begins with.
const OF_ZYGOTE: &str = "tenon-zygote-";

/// How often the processes of a group are moved away before it is given up: one that starts just then has to be moved, too.
const MOVE_ROUNDS: usize = 5;

/// How many names for a zygote's group are tried. Those that are taken were left by zygotes of the same number.
const NAME_ATTEMPTS: usize = 100;

/// Which groups this process could make for extensions, without changing anything. All processes of the delegated group have to
/// come from the given one if limits are to be set.
pub fn survey(session: u32) -> Result<ControlGroup, Missing> {
    let place = Place::find()?;
    let limited = place.is_limiting() || place.may_be_emptied(session);
    let controllers = place.controllers();
    Ok(ControlGroup { memory: limited && controllers.memory, tasks: limited && controllers.tasks })
}

/// The groups of a zygote.
pub struct Groups {
    base: PathBuf,
    folder: PathBuf,
    controllers: ControlGroup,
    next: u64,
    /// Those whose extension has ended, and something that it detached has not.
    left: Vec<Group>,
    /// Locked, which shows that the zygote lives.
    _lock: File,
}

impl Groups {
    /// Prepares for groups of extensions, and removes what zygotes have left that died. The given process is the session
    /// that started this one.
    pub fn prepare(session: u32) -> Result<Self, Missing> {
        let place = Place::find()?;
        remove_stale(&place.base);
        if !place.is_limiting() && place.may_be_emptied(session) {
            // Without limits the groups are of use all the same.
            let _ = enable_limits(&place, session);
        }
        let failed = |source| Missing::Failed { path: place.base.clone(), source };
        let (folder, lock) = make_folder(&place.base).map_err(failed)?;
        if !folder.join("cgroup.kill").exists() {
            let _ = std::fs::remove_dir(&folder);
            return Err(Missing::TooOld(folder));
        }
        enable(&folder);
        let controllers = place::enabled(&folder);
        Ok(Self { base: place.base, folder, controllers, next: 1, left: Vec::new(), _lock: lock })
    }

    /// A group for a new process.
    pub fn make(&mut self) -> io::Result<Group> {
        let path = self.folder.join(self.next.to_string());
        self.next += 1;
        std::fs::create_dir(&path)?;
        Ok(Group { path, controllers: self.controllers })
    }

    /// Removes the group of an extension that has ended. What it detached stays in the group, and the group until that ends.
    pub fn take_back(&mut self, group: Group) {
        self.left.push(group);
        self.left.retain(|group| !group.remove());
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        self.left.retain(|group| !group.remove());
        // What is not empty is removed by a zygote that comes later.
        let _ = std::fs::remove_dir(&self.folder);
        give_back(&self.base);
    }
}

/// Undoes [`enable_limits`] after the last zygote, or no other process could be put into the delegated group any more.
fn give_back(base: &Path) {
    let leaf = base.join(LEAF);
    let is_of_zygote =
        |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().starts_with(OF_ZYGOTE);
    let mut entries = std::fs::read_dir(base).into_iter().flatten().flatten();
    if !leaf.exists() || entries.any(is_of_zygote) {
        return;
    }
    for controller in ["-memory", "-pids"] {
        let _ = write(&base.join("cgroup.subtree_control"), controller);
    }
    // If the session still is in it, it stays.
    let _ = write(&base.join("cgroup.procs"), "0");
    let _ = std::fs::remove_dir(leaf);
}

/// One extension's group.
pub struct Group {
    path: PathBuf,
    controllers: ControlGroup,
}

impl Group {
    /// Its folder, for starting a process in it.
    pub fn open(&self) -> io::Result<File> {
        File::open(&self.path)
    }

    /// Moves the calling process into it, with all its threads.
    pub fn join(&self) -> io::Result<()> {
        write(&self.path.join("cgroup.procs"), "0")
    }

    /// Limits what all processes in it may have together: memory in bytes, and processes with their threads. Returns what
    /// is limited now.
    pub fn limit(&self, memory: u64, tasks: u64) -> ControlGroup {
        let set = |file: &str, value: &str| write(&self.path.join(file), value).is_ok();
        let memory = self.controllers.memory && set("memory.max", &memory.to_string());
        if memory {
            // Or else it would go on in swap space, and slow everything down. Absent where there is none.
            set("memory.swap.max", "0");
            // Which of its processes took the memory is not for the kernel to guess.
            set("memory.oom.group", "1");
        }
        let tasks = self.controllers.tasks && set("pids.max", &tasks.to_string());
        ControlGroup { memory, tasks }
    }

    /// Ends every process in it at once, also those that are being started.
    pub fn kill(&self) -> io::Result<()> {
        write(&self.path.join("cgroup.kill"), "1")
    }

    /// Whether the kernel has ended processes in it because they had too much memory.
    pub fn ran_out_of_memory(&self) -> bool {
        let events = std::fs::read_to_string(self.path.join("memory.events")).unwrap_or_default();
        place::number(&events, "oom_kill") > 0
    }

    /// Tells when the system refuses it another process or thread.
    pub fn task_events(&self) -> Option<TaskEvents> {
        let mut events = TaskEvents(
            File::open(self.path.join("pids.events")).ok().filter(|_| self.controllers.tasks)?,
        );
        // What happens from here on wakes whoever waits for it.
        events.were_refused();
        Some(events)
    }

    /// Removes it; false as long as something is in it.
    fn remove(&self) -> bool {
        match std::fs::remove_dir(&self.path) {
            Ok(()) => true,
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// A file that has an exceptional condition (`POLLPRI`) after the system has refused a group another process or thread.
pub struct TaskEvents(File);

impl TaskEvents {
    /// Whether that has happened. Whoever waits is woken again after the next time.
    pub fn were_refused(&mut self) -> bool {
        let mut text = String::new();
        let read = self.0.rewind().and_then(|()| self.0.read_to_string(&mut text));
        read.is_ok() && place::number(&text, "max") > 0
    }
}

impl AsFd for TaskEvents {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Moves all processes of the delegated group into one below it, and lets those below it have limits.
fn enable_limits(place: &Place, session: u32) -> io::Result<()> {
    if !place.is_root {
        let leaf = place.base.join(LEAF);
        match std::fs::create_dir(&leaf) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        for _ in 0..MOVE_ROUNDS {
            // One that came meanwhile may be somebody else's.
            if !place.may_be_emptied(session) {
                break;
            }
            let here = place.processes();
            if here.is_empty() {
                break;
            }
            for process in here {
                // It may have ended.
                let _ = write(&leaf.join("cgroup.procs"), &process.to_string());
            }
        }
    }
    enable(&place.base);
    Ok(())
}

/// Lets the groups below one have limits, as far as the system has them.
fn enable(folder: &Path) {
    for controller in ["+memory", "+pids"] {
        // One at a time: if one is missing, the other is of use all the same.
        let _ = write(&folder.join("cgroup.subtree_control"), controller);
    }
}

/// Makes the group of a zygote, and locks it.
fn make_folder(base: &Path) -> io::Result<(PathBuf, File)> {
    let own = std::process::id();
    for attempt in 1..=NAME_ATTEMPTS {
        let path = base.join(format!("{OF_ZYGOTE}{own}-{attempt}"));
        match std::fs::create_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made?,
        }
        // Until it is locked, another zygote may take it for one that was left, and remove it.
        let Ok(folder) = File::open(&path) else { continue };
        if folder.try_lock().is_ok() && path.exists() {
            return Ok((path, folder));
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, "all names are taken"))
}

/// Removes groups of zygotes that are not there any more, as far as nothing is in them. What is was detached, and outlives its
/// extension.
fn remove_stale(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with(OF_ZYGOTE) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        match folder.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => continue,
        }
        for group in std::fs::read_dir(entry.path()).into_iter().flatten().flatten() {
            if group.file_type().is_ok_and(|kind| kind.is_dir()) {
                let _ = std::fs::remove_dir(group.path());
            }
        }
        let _ = std::fs::remove_dir(entry.path());
    }
}

/// Writes to a file of the system, which must be there.
fn write(file: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    // At one go: the system takes each write for one order.
    File::options().write(true).open(file)?.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use std::io::BufRead;
    use std::os::unix::fs::MetadataExt;
    use std::process::Child;
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    /// The groups of a test, or none, and a word about it, where nothing is delegated.
    #[allow(clippy::print_stderr, reason = "a test says that it is skipped")]
    fn groups() -> Option<Groups> {
        match Groups::prepare(std::process::id()) {
            Ok(groups) => Some(groups),
            Err(missing) => {
                eprintln!("skipped: {missing}");
                None
            }
        }
    }

    /// A process in a group that has started another, which is nobody's child.
    fn process_in(group: &Group) -> (Child, u32) {
        let script = "read go; setsid sleep 1000 >/dev/null & echo $!; exec sleep 1000";
        let mut shell = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        write(&group.path.join("cgroup.procs"), &shell.id().to_string()).unwrap();
        drop(shell.stdin.take().map(|mut stdin| io::Write::write_all(&mut stdin, b"go\n")));
        let mut line = String::new();
        io::BufReader::new(shell.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (shell, line.trim().parse().unwrap())
    }

    fn processes_of(group: &Group) -> String {
        std::fs::read_to_string(group.path.join("cgroup.procs")).unwrap()
    }

    /// Waits until nothing is in a group: the system removes ended processes a little later.
    fn until_empty(group: &Group) {
        while std::fs::read_to_string(group.path.join("cgroup.events"))
            .unwrap()
            .contains("populated 1")
        {
            std::thread::yield_now();
        }
    }

    #[test]
    fn everything_in_a_group_is_ended_at_once_and_the_group_is_removed() {
        let Some(mut groups) = groups() else { return };
        let group = groups.make().unwrap();
        let path = group.path.clone();
        let (mut shell, detached) = process_in(&group);
        assert!(processes_of(&group).lines().any(|line| line == detached.to_string()));
        group.kill().unwrap();
        assert!(!shell.wait().unwrap().success());
        until_empty(&group);
        assert!(!Path::new(&format!("/proc/{detached}/cwd")).exists());
        groups.take_back(group);
        assert!(!path.exists());
        let folder = groups.folder.clone();
        drop(groups);
        assert!(!folder.exists());
    }

    #[test]
    fn a_group_stays_as_long_as_something_is_in_it() {
        let Some(mut groups) = groups() else { return };
        let (first, second) = (groups.make().unwrap(), groups.make().unwrap());
        let (path, (mut shell, _)) = (first.path.clone(), process_in(&first));
        let handle = Group { path: path.clone(), controllers: ControlGroup::default() };
        groups.take_back(first);
        assert!(path.exists());
        handle.kill().unwrap();
        shell.wait().unwrap();
        until_empty(&handle);
        groups.take_back(second);
        assert!(!path.exists());
    }

    #[test]
    fn what_a_dead_zygote_left_is_removed_and_that_of_a_living_one_is_not() {
        let (Some(mut living), Some(mut dead)) = (groups(), groups()) else { return };
        let (of_living, of_dead) = (living.make().unwrap(), dead.make().unwrap());
        // As if it was killed: its lock is gone and its folders are not.
        let (folder, group) = (dead.folder.clone(), of_dead.path.clone());
        // The next one may have a folder of the same name.
        let identity = |path: &Path| std::fs::metadata(path).map(|it| it.ino()).ok();
        let left = identity(&folder);
        let Groups { _lock, .. } = &dead;
        _lock.unlock().unwrap();
        std::mem::forget(dead);
        let next = groups().unwrap();
        // A zygote beside this test may be about to remove them, and holds the lock as long.
        while group.exists() || identity(&folder) == left {
            remove_stale(&next.base);
            std::thread::yield_now();
        }
        assert!(of_living.path.exists());
        drop(next);
        living.take_back(of_living);
    }

    #[test]
    fn the_survey_says_what_there_will_be() {
        let Some(groups) = groups() else { return };
        let surveyed = survey(std::process::id()).unwrap();
        assert_eq!(surveyed, groups.controllers);
    }
}
