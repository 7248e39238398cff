//! A working directory per extension.
//!
//! The working directory belongs to the process. An extension with a process of its own simply enters it. For those in
//! the process of the program that embeds them, Linux keeps it per thread group only as long as
//! nobody asks otherwise: a thread that leaves the shared file-system state has a directory (and a
//! umask) of its own, and every thread it starts, such as those for blocking file operations, shares
//! it. So `process.chdir`, relative paths and the directory of child processes are the extension's,
//! with no op replaced.

use std::path::Path;

/// Whose the working directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ownership {
    /// The extension's: it may change it.
    Own,
    /// Everyone's: nobody may change it.
    Shared,
}

/// The working directory could not be set.
#[derive(Debug, thiserror::Error)]
pub enum WorkingDirectoryError {
    /// The directory is not there or not accessible.
    #[error("the working directory {path} cannot be entered: {source}")]
    Enter {
        /// The directory.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The system keeps one directory for all threads, and it is another one.
    #[error(
        "this system does not allow a working directory per extension, and the program was not \
         started in {path}; start it there"
    )]
    Shared {
        /// The directory.
        path: String,
    },
}

/// Enters a directory. In a process that is not the extension's alone, gives the calling thread, and the threads it will
/// start, a working directory of its own. Where the system cannot, the process must be in that directory already; then
/// the answer is `Shared`.
pub fn enter(path: &Path, is_alone: bool) -> Result<Ownership, WorkingDirectoryError> {
    if !is_alone && !leave_shared_state() {
        let here = std::env::current_dir().and_then(std::fs::canonicalize).ok();
        let there = std::fs::canonicalize(path).ok();
        return match there {
            Some(there) if Some(&there) == here.as_ref() => Ok(Ownership::Shared),
            _ => Err(WorkingDirectoryError::Shared { path: path.display().to_string() }),
        };
    }
    std::env::set_current_dir(path)
        .map(|()| Ownership::Own)
        .map_err(|source| WorkingDirectoryError::Enter { path: path.display().to_string(), source })
}

#[cfg(target_os = "linux")]
fn leave_shared_state() -> bool {
    // SAFETY: unshare with CLONE_FS only gives the calling thread its own copy of cwd, root and umask.
    unsafe { libc::unshare(libc::CLONE_FS) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn leave_shared_state() -> bool {
    false
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_entered_a_directory_leaves_the_others_where_they_are() {
        let before = std::env::current_dir().unwrap();
        std::thread::spawn(|| {
            enter(Path::new("/"), false).unwrap();
            let child = std::thread::spawn(|| std::env::current_dir().unwrap());
            assert_eq!(child.join().unwrap(), Path::new("/"));
        })
        .join()
        .unwrap();
        assert_eq!(std::env::current_dir().unwrap(), before);
    }

    #[test]
    fn a_missing_directory_is_named() {
        let error = std::thread::spawn(|| enter(Path::new("/no/such/place"), false).unwrap_err());
        assert!(error.join().unwrap().to_string().contains("/no/such/place"));
    }
}
