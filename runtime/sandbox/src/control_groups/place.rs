//! The part of the hierarchy that was delegated to us, if any was.

use std::collections::HashSet;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::path::PathBuf;

use tenon_protocol::layers::ControlGroup;

use super::LEAF;

/// Why there are no control groups for extensions.
#[derive(Debug, thiserror::Error)]
pub enum Missing {
    /// The system has none, or only those of version 1.
    #[error("no hierarchy of version 2 is mounted that this process is in")]
    NoHierarchy,
    /// Before Linux 5.14 a group cannot be ended at once.
    #[error("the kernel is too old: {} has no cgroup.kill", .0.display())]
    TooOld(PathBuf),
    /// It belongs to somebody else.
    #[error("{} is not delegated: {why}", .path.display())]
    NotDelegated {
        /// The group.
        path: PathBuf,
        /// What speaks against it.
        why: &'static str,
    },
    /// The system refused a step.
    #[error("{}: {source}", .path.display())]
    Failed {
        /// Where.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// A group below which we may make others.
pub struct Place {
    /// Its folder.
    pub base: PathBuf,
    /// Whether it is that of the whole system, which may have processes beside groups.
    pub is_root: bool,
}

impl Place {
    /// The one that this process is in.
    pub fn find() -> Result<Self, Missing> {
        let own = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let (mount, below) = locate(&own, &mounts).ok_or(Missing::NoHierarchy)?;
        let mut below = below.as_path();
        if below.file_name().is_some_and(|name| name == LEAF) {
            below = below.parent().unwrap_or(below);
        }
        let base = mount.join(below);
        let is_root = !base.join("cgroup.type").exists();
        let not_delegated = |why| Missing::NotDelegated { path: base.clone(), why };
        if !is_root {
            let kind = std::fs::read_to_string(base.join("cgroup.type")).unwrap_or_default();
            if kind.trim() != "domain" {
                return Err(not_delegated("it is a group of threads"));
            }
            if !base.join("cgroup.kill").exists() {
                return Err(Missing::TooOld(base));
            }
        }
        if let Some(unit) = unit(below)
            && !is_marked(&mount.join(unit))
        {
            return Err(not_delegated("systemd manages it"));
        }
        if !["", "cgroup.procs", "cgroup.subtree_control"]
            .iter()
            .all(|file| is_writable(&base.join(file)))
        {
            return Err(not_delegated("it cannot be written"));
        }
        Ok(Self { base, is_root })
    }

    /// What can be limited below it, once that is enabled.
    pub fn controllers(&self) -> ControlGroup {
        listed(&self.base.join("cgroup.controllers"))
    }

    /// Whether groups below it have all the limits already that they can have.
    pub fn is_limiting(&self) -> bool {
        enabled(&self.base) == self.controllers()
    }

    /// Whether no process is in it that does not come from the given one: nobody else's may be moved.
    pub fn may_be_emptied(&self, session: u32) -> bool {
        self.is_root || all_descend(&self.processes(), session, parent_of)
    }

    /// The processes in it. Zero stands for one that this process cannot see.
    pub fn processes(&self) -> Vec<u32> {
        let text = std::fs::read_to_string(self.base.join("cgroup.procs")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }
}

/// What is limited below a group.
pub fn enabled(folder: &Path) -> ControlGroup {
    listed(&folder.join("cgroup.subtree_control"))
}

fn listed(file: &Path) -> ControlGroup {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let has = |name| text.split_whitespace().any(|word| word == name);
    ControlGroup { memory: has("memory"), tasks: has("pids") }
}

/// The number beside a name, in a file of the system with one of each a line.
pub fn number(text: &str, name: &str) -> u64 {
    let line = text.lines().filter_map(|line| line.split_once(' ')).find(|(it, _)| *it == name);
    line.and_then(|(_, number)| number.trim().parse().ok()).unwrap_or(0)
}

/// Where the hierarchy is mounted, and the group of this process below that, from what the system says of both.
fn locate(own: &str, mounts: &str) -> Option<(PathBuf, PathBuf)> {
    let path = Path::new(own.lines().find_map(|line| line.strip_prefix("0::"))?);
    mounts.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        if kind.split(' ').next() != Some("cgroup2") {
            return None;
        }
        let mut fields = fields.split(' ').skip(3);
        let (root, mount) = (unescape(fields.next()?), unescape(fields.next()?));
        // One that is mounted somewhere else in the hierarchy does not show our group.
        let below = path.strip_prefix(root).ok()?;
        // Above our own namespace.
        let is_below = !below.components().any(|part| part.as_os_str() == "..");
        is_below.then(|| (PathBuf::from(mount), below.to_owned()))
    })
}

/// The system writes spaces and the like as octal numbers.
fn unescape(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (code, character)| text.replace(code, character))
}

/// The unit of systemd that a group belongs to. Whatever systemd manages it changes and removes as it likes, unless it has
/// delegated it.
fn unit(group: &Path) -> Option<&Path> {
    let is_unit = |group: &&Path| {
        let kind = group.extension();
        kind.is_some_and(|kind| ["scope", "service", "slice"].iter().any(|it| kind == *it))
    };
    group.ancestors().find(is_unit)
}

/// Whether systemd has marked a group as delegated.
fn is_marked(group: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(group.as_os_str().as_bytes()) else { return false };
    [c"user.delegate", c"trusted.delegate"].iter().any(|name| {
        let mut value = [0_u8; 8];
        // SAFETY: both strings end with a zero, and the buffer has the length that is given.
        let length = unsafe {
            libc::getxattr(path.as_ptr(), name.as_ptr(), value.as_mut_ptr().cast(), value.len())
        };
        length == 1 && value[0] == b'1'
    })
}

fn is_writable(path: &Path) -> bool {
    let Ok(path) = std::ffi::CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the string ends with a zero and outlives the call.
    unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), libc::W_OK, libc::AT_EACCESS) == 0 }
}

/// Whether all processes are the given one or come from it.
fn all_descend(processes: &[u32], from: u32, parent: impl Fn(u32) -> Option<u32>) -> bool {
    processes.iter().all(|&process| {
        let mut seen = HashSet::new();
        let mut next = Some(process);
        while let Some(process) = next.filter(|process| *process > 0 && seen.insert(*process)) {
            if process == from {
                return true;
            }
            next = parent(process);
        }
        false
    })
}

fn parent_of(process: u32) -> Option<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name before may contain anything.
    text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "24 1 0:22 / /sys rw - sysfs sysfs rw\n\
        30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_own_group_is_found_where_the_hierarchy_is_mounted() {
        let at = |own: &str, mounts: &str| locate(own, mounts);
        assert_eq!(
            at("3:cpu:/x\n0::/user.slice/a.scope\n", MOUNTS),
            Some(("/sys/fs/cgroup".into(), "user.slice/a.scope".into()))
        );
        assert_eq!(at("0::/\n", MOUNTS), Some(("/sys/fs/cgroup".into(), "".into())));
        assert_eq!(at("3:cpu:/x\n", MOUNTS), None);
        assert_eq!(at("0::/../other\n", MOUNTS), None);
        let part = "30 24 0:26 /a /mnt/with\\040space rw - cgroup2 cgroup2 rw\n";
        assert_eq!(at("0::/a/b\n", part), Some(("/mnt/with space".into(), "b".into())));
        assert_eq!(at("0::/c\n", part), None);
    }

    #[test]
    fn the_innermost_unit_decides() {
        let of = |group: &str| unit(Path::new(group)).map(|unit| unit.display().to_string());
        assert_eq!(of("user.slice/u.service/a.scope"), Some("user.slice/u.service/a.scope".into()));
        assert_eq!(of("user.slice/a.scope/mine"), Some("user.slice/a.scope".into()));
        assert_eq!(of("docker/0123"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn a_process_of_somebody_else_keeps_a_group_as_it_is() {
        // 10 started 11, which started 12; 20 came from elsewhere.
        let parent = |process| match process {
            11 => Some(10),
            12 => Some(11),
            10 | 20 => Some(1),
            1 => Some(0),
            _ => None,
        };
        assert!(all_descend(&[10, 12], 10, parent));
        assert!(all_descend(&[], 10, parent));
        assert!(!all_descend(&[12, 20], 10, parent));
        // One that this process cannot see is somebody else's, too.
        assert!(!all_descend(&[0, 10], 10, parent));
    }

    #[test]
    fn the_parent_of_a_process_is_read_past_its_name() {
        assert_eq!(parent_of(std::process::id()), Some(std::os::unix::process::parent_id()));
    }

    #[test]
    fn a_number_is_found_by_its_name() {
        assert_eq!(number("oom 3\noom_kill 2\n", "oom_kill"), 2);
        assert_eq!(number("max 0\n", "oom_kill"), 0);
    }
}
