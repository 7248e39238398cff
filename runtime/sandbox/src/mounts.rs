//! Mounts that close paths inside an allowed folder, in a mount namespace of the process's own.
//!
//! - What is not to be written gets mounted on itself, read-only.
//! - What lies in there and is to be written all the same gets mounted on itself again, as it was before.
//! - What is not to be read gets something empty mounted over it.
//! - The folders above, as far as the process could rename them, get mounted on themselves: a mount point
//!   cannot be renamed or removed, so nothing else can be put in its place. The same is done to links that
//!   lead to what is closed: a link can be a mount point, too; and to the folders above what is denied and not there.
//! - Where only some folders are writable, all others become read-only. Landlock has no rule for modes,
//!   owners, times and attributes of files; a read-only mount has.
//!
//! The price: between what is mounted, files move by copying (`EXDEV`). And from outside, where these
//! mounts are not, the paths can still be replaced; with the path goes its mount.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::ffi::CString;
use std::fs::DirBuilder;
use std::fs::Permissions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::fd::FromRawFd;
use std::os::fd::OwnedFd;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use crate::capabilities;
use crate::error::SandboxError;
use crate::layers::Layer;
use crate::namespace;
use crate::namespace::Identity;
use crate::plan::Plan;

// The C library's crate has the calls' numbers, but not their flags: <linux/mount.h>.
const OPEN_TREE_CLONE: u32 = 1;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;
const FSCONFIG_SET_STRING: u32 = 1;
const FSCONFIG_CMD_CREATE: u32 = 6;
const MOUNT_ATTR_RDONLY: u64 = 1;
const MOUNT_ATTR_NOSUID: u64 = 2;
const MOUNT_ATTR_NODEV: u64 = 4;
const MOUNT_ATTR_NOEXEC: u64 = 8;

/// `struct mount_attr`
#[repr(C)]
#[derive(Default)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// Nobody but a privileged process may read, search or write it.
const MODE_NOTHING: &CStr = c"000";
/// It may be searched for what is mounted below, and not listed.
const MODE_SEARCH: &CStr = c"111";

/// The name, in a file system that nobody sees, of the file that is mounted over hidden files.
const NOTHING: &str = "nothing";

/// What happens at a path; the last that is asked for wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Closing {
    Pinned,
    Reopened,
    Frozen,
    Hidden,
}

/// Makes the mounts of a plan, and returns links that could not be held in their place. The process is left without any
/// capability that comes with its namespace.
pub fn apply(plan: &Plan) -> Result<Vec<(PathBuf, io::Error)>, SandboxError> {
    let failed = |action, error| SandboxError::failed(Layer::MountNamespace, action, error);
    // The current folder would go on to lead below the mounts.
    let current = std::env::current_dir();
    match namespace::enter(&Identity::current()) {
        Ok(()) => {}
        Err(_) if capabilities::may_mount() => {
            namespace::enter_as_root().map_err(|error| failed("make a namespace".into(), error))?;
        }
        Err(error) => return Err(failed("make a user namespace".into(), error)),
    }
    detach_from_system()
        .map_err(|error| failed("leave the system's mounts alone".into(), error))?;
    // Copied before anything is closed: a copy of what is read-only is read-only.
    let open: Vec<_> = plan
        .reopened
        .iter()
        .map(|path| copy(path).map(|copy| (path.as_path(), copy)))
        .collect::<io::Result<_>>()
        .map_err(|error| failed("keep what stays writable".into(), error))?;
    if plan.limits_writing() {
        close_the_rest(&plan.write)
            .map_err(|error| failed("make all but the writable folders read-only".into(), error))?;
    }
    for (path, closing) in closings(plan) {
        let closed = match closing {
            Closing::Pinned => mount_on_itself(&path, false),
            Closing::Reopened => match open.iter().find(|(kept, _)| *kept == path) {
                Some((_, copy)) => attach(copy, &path),
                None => Ok(()),
            },
            Closing::Frozen => mount_on_itself(&path, true),
            Closing::Hidden => hide(&path, &plan.kept),
        };
        closed.map_err(|error| failed(format!("close {} ({closing:?})", path.display()), error))?;
    }
    // Last: what is mounted on a folder later would take its place.
    let pinned = plan.links.iter().map(|link| (link, mount_on_itself(link, false)));
    let loose = pinned.filter_map(|(link, done)| Some((link.clone(), done.err()?))).collect();
    let back = current.and_then(std::env::set_current_dir);
    back.or_else(|_| std::env::set_current_dir("/"))
        .map_err(|error| failed("go back to the current folder".into(), error))?;
    Ok(loose)
}

/// Mounts made here stay here. Those that the system makes and removes from now on still come and go.
///
/// Allocates nothing: the probe runs it after a fork.
pub fn detach_from_system() -> io::Result<()> {
    let attributes = Attributes { propagation: libc::MS_SLAVE, ..Attributes::default() };
    set_attributes(libc::AT_FDCWD, c"/", libc::AT_RECURSIVE, &attributes)
}

/// What is to be done, folders before what is in them, without what lies in something closed anyway.
fn closings(plan: &Plan) -> Vec<(PathBuf, Closing)> {
    let mut all: BTreeMap<&Path, Closing> = BTreeMap::new();
    let mut add = |path, closing| {
        let entry = all.entry(path).or_insert(closing);
        *entry = closing.max(*entry);
    };
    let frozen = plan.frozen.iter().map(|path| (path, Closing::Frozen));
    let hidden = plan.hidden.iter().map(|path| (path, Closing::Hidden));
    for (path, closing) in frozen.chain(hidden) {
        add(path, closing);
        plan.movable_above(path).for_each(|above| add(above, Closing::Pinned));
    }
    for path in plan.links.iter().chain(&plan.absent) {
        plan.movable_above(path).for_each(|above| add(above, Closing::Pinned));
    }
    plan.reopened.iter().for_each(|path| add(path, Closing::Reopened));
    let mut closings: Vec<(PathBuf, Closing)> = Vec::with_capacity(all.len());
    for (path, closing) in all {
        // The nearest that says whether anything can be written here. Folders come before what is in them.
        let above = closings
            .iter()
            .rev()
            .find(|(above, done)| path.starts_with(above) && *done != Closing::Pinned);
        let needed = match above.map(|(_, done)| *done) {
            Some(Closing::Hidden) => false,
            Some(Closing::Frozen) => matches!(closing, Closing::Reopened | Closing::Hidden),
            _ => closing != Closing::Reopened,
        };
        if needed {
            closings.push((path.to_owned(), closing));
        }
    }
    closings
}

/// Makes every mount read-only, but not the writable trees.
fn close_the_rest(writable: &[PathBuf]) -> io::Result<()> {
    let outermost =
        |path: &&PathBuf| !writable.iter().any(|other| path.starts_with(other) && *path != other);
    let copies = writable.iter().filter(outermost);
    let copies: Vec<_> =
        copies.map(|path| copy(path).map(|copy| (path, copy))).collect::<io::Result<_>>()?;
    set_attributes(libc::AT_FDCWD, c"/", libc::AT_RECURSIVE, &read_only())?;
    copies.iter().try_for_each(|(path, copy)| attach(copy, path))
}

fn mount_on_itself(path: &Path, close: bool) -> io::Result<()> {
    let copy = copy(path)?;
    if close {
        set_attributes(copy.as_raw_fd(), c"", EMPTY_PATH | libc::AT_RECURSIVE, &read_only())?;
    }
    attach(&copy, path)
}

/// Mounts something empty over a path, with what is to be kept still in its place.
fn hide(path: &Path, kept: &[PathBuf]) -> io::Result<()> {
    if !path.is_dir() {
        return hide_file(path);
    }
    let inside = kept.iter().filter(|kept| kept.starts_with(path));
    let inside: Vec<_> =
        inside.map(|kept| copy(kept).map(|copy| (kept, copy))).collect::<io::Result<_>>()?;
    if inside.is_empty() {
        return attach(&empty(MODE_NOTHING, true)?, path);
    }
    let empty = empty(MODE_SEARCH, false)?;
    attach(&empty, path)?;
    for (kept, copy) in inside {
        set_attributes(copy.as_raw_fd(), c"", EMPTY_PATH | libc::AT_RECURSIVE, &read_only())?;
        let is_folder = kept_is_folder(&copy)?;
        let folder = if is_folder { Some(kept.as_path()) } else { kept.parent() };
        if let Some(folder) = folder {
            // To be made in it takes the right to write, which nothing below has at the end.
            make_folders(path, folder)?;
        }
        if !is_folder {
            std::fs::write(kept, "")?;
        }
        attach(&copy, kept)?;
    }
    set_attributes(empty.as_raw_fd(), c"", EMPTY_PATH, &read_only())
}

fn kept_is_folder(copy: &OwnedFd) -> io::Result<bool> {
    // SAFETY: all-zero is a valid stat, which the kernel fills.
    unsafe {
        let mut stat: libc::stat = std::mem::zeroed();
        if libc::fstat(copy.as_raw_fd(), &raw mut stat) != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(stat.st_mode & libc::S_IFMT == libc::S_IFDIR)
    }
}

/// Makes the folders from one that exists down to another, which can be searched and not listed.
fn make_folders(from: &Path, to: &Path) -> io::Result<()> {
    let mut missing: Vec<_> = to.ancestors().take_while(|step| *step != from).collect();
    missing.reverse();
    for folder in missing {
        match DirBuilder::new().mode(0o111).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// A file is hidden by another, which must be in a file system that is mounted somewhere while a mount
/// of that file alone is made: for a moment, over the folder of the one to be hidden.
fn hide_file(path: &Path) -> io::Result<()> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let place = c_string(parent)?;
    attach(&empty(c"755", false)?, parent)?;
    let nothing = parent.join(NOTHING);
    let made = std::fs::write(&nothing, "")
        .and_then(|()| std::fs::set_permissions(&nothing, Permissions::from_mode(0o000)))
        .and_then(|()| copy(&nothing));
    // SAFETY: the path ends with a null byte.
    if unsafe { libc::umount2(place.as_ptr(), libc::MNT_DETACH) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let made = made?;
    set_attributes(made.as_raw_fd(), c"", EMPTY_PATH, &read_only())?;
    attach(&made, path)
}

/// The flag under which a call means the descriptor itself.
const EMPTY_PATH: libc::c_int = libc::AT_EMPTY_PATH;

fn read_only() -> Attributes {
    Attributes { set: MOUNT_ATTR_RDONLY, ..Attributes::default() }
}

/// A mount of a path and all that is mounted below it, not yet in any place.
fn copy(path: &Path) -> io::Result<OwnedFd> {
    let path = c_string(path)?;
    let flags = OPEN_TREE_CLONE
        | libc::O_CLOEXEC as u32
        | libc::AT_RECURSIVE as u32
        | libc::AT_SYMLINK_NOFOLLOW as u32;
    // SAFETY: the path ends with a null byte.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) })
}

/// An empty file system in memory, not yet in any place.
fn empty(mode: &CStr, closed: bool) -> io::Result<OwnedFd> {
    const CLOEXEC: u32 = 1;
    // SAFETY: all texts end with a null byte, and the descriptors are open.
    unsafe {
        let context = descriptor(libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), CLOEXEC))?;
        let raw = context.as_raw_fd();
        let none = std::ptr::null::<libc::c_char>();
        for (key, value) in [(c"mode", mode), (c"size", c"64k"), (c"nr_inodes", c"1k")] {
            let (set, key) = (FSCONFIG_SET_STRING, key.as_ptr());
            done(libc::syscall(libc::SYS_fsconfig, raw, set, key, value.as_ptr(), 0))?;
        }
        done(libc::syscall(libc::SYS_fsconfig, raw, FSCONFIG_CMD_CREATE, none, none, 0))?;
        let limits = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
        let limits = if closed { limits | MOUNT_ATTR_RDONLY } else { limits };
        descriptor(libc::syscall(libc::SYS_fsmount, raw, CLOEXEC, limits as u32))
    }
}

/// Puts a mount in its place.
fn attach(mount: &OwnedFd, path: &Path) -> io::Result<()> {
    let path = c_string(path)?;
    // SAFETY: both texts end with a null byte, and the descriptor is open.
    done(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_FDCWD,
            path.as_ptr(),
            MOVE_MOUNT_F_EMPTY_PATH,
        )
    })
}

/// Unlike a remount this leaves alone what is not named, which the namespace's owner might have locked.
fn set_attributes(
    folder: RawFd,
    path: &CStr,
    flags: libc::c_int,
    attributes: &Attributes,
) -> io::Result<()> {
    // SAFETY: the path ends with a null byte, and the kernel reads as much as the length says.
    done(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder,
            path.as_ptr(),
            flags,
            std::ptr::from_ref(attributes),
            size_of::<Attributes>(),
        )
    })
}

fn c_string(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

fn done(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    done(result)?;
    // SAFETY: the kernel has just made it, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(result as RawFd) })
}
