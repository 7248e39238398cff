//! Whether it was the sandbox that refused something which the checks in Rust had permitted.
//!
//! The kernel answers with the same numbers for a sandbox as for the modes and owners of files. But it tells what modes and
//! owners alone would permit (`faccessat`), which no sandbox has a say in.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What was to be done with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// It was to be read or listed.
    Read,
    /// It was to be written or made.
    Write,
    /// Its name was to be changed or removed.
    Name,
    /// It was to be started.
    Start,
}

/// Whether the sandbox is what this error comes from.
pub fn by_sandbox(error: &io::Error, path: &Path, attempt: Attempt) -> bool {
    match error.raw_os_error() {
        Some(libc::EROFS) => true,
        // A folder above something that is closed is held in its place by a mount.
        Some(libc::EBUSY) => attempt == Attempt::Name,
        Some(libc::EACCES | libc::EPERM) => would_be_permitted(path, attempt),
        _ => false,
    }
}

/// Whether nothing but a sandbox forbids this.
pub fn would_be_permitted(path: &Path, attempt: Attempt) -> bool {
    if is_hidden(path) {
        return true;
    }
    let parent = path.parent().unwrap_or(path);
    match attempt {
        Attempt::Read => modes_permit(path, libc::R_OK),
        Attempt::Start => modes_permit(path, libc::X_OK),
        Attempt::Write if path.exists() => modes_permit(path, libc::W_OK),
        Attempt::Write | Attempt::Name => modes_permit(parent, libc::W_OK | libc::X_OK),
    }
}

/// How the sandbox hides what may not be read: something empty without any rights is mounted over it.
fn is_hidden(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| {
        it.mode() & 0o777 == 0 && (it.is_dir() || it.len() == 0) && is_another_mount(path, it.dev())
    })
}

fn is_another_mount(path: &Path, device: u64) -> bool {
    path.parent().and_then(|parent| parent.metadata().ok()).is_some_and(|it| it.dev() != device)
}

fn modes_permit(path: &Path, mode: libc::c_int) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: the path ends with a null byte.
    let result = unsafe { libc::faccessat(libc::AT_FDCWD, path.as_ptr(), mode, libc::AT_EACCESS) };
    // What the sandbox does not let be written is on a mount that is read-only.
    result == 0 || io::Error::last_os_error().raw_os_error() == Some(libc::EROFS)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn refusal(number: i32) -> io::Error {
        io::Error::from_raw_os_error(number)
    }

    #[test]
    fn what_modes_permit_was_refused_by_the_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for attempt in [Attempt::Read, Attempt::Write, Attempt::Name] {
            assert!(by_sandbox(&refusal(libc::EACCES), &file, attempt));
            assert!(by_sandbox(&refusal(libc::EROFS), &file, attempt));
            assert!(!by_sandbox(&refusal(libc::ENOENT), &file, attempt));
        }
        assert!(by_sandbox(&refusal(libc::EACCES), &folder.path().join("new"), Attempt::Write));
    }

    #[test]
    fn what_modes_forbid_was_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        // Nobody may start what has no such bit, not even root.
        assert!(!by_sandbox(&refusal(libc::EACCES), &file, Attempt::Start));
        std::fs::set_permissions(&file, Permissions::from_mode(0o700)).unwrap();
        assert!(by_sandbox(&refusal(libc::EACCES), &file, Attempt::Start));
        assert!(!by_sandbox(&refusal(libc::EBUSY), &file, Attempt::Write));
    }
}
