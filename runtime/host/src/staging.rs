//! A hidden folder in which something is made ready before it gets its name.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;
use std::time::SystemTime;

/// How all of their names begin. What is being made ready lies one level deeper, so that nobody who looks
/// for extensions takes it for one.
const PREFIX: &str = ".tenon-";

/// What they are for, as the next part of the name.
const PURPOSES: [&str; 3] = ["new", "install", "removed"];

/// The age at which one is left over from a program that was killed. Nothing takes that long.
const STALE_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the end of a folder waits for those who still write into it.
const LAST_WRITERS: Duration = Duration::from_secs(2);

/// How often it is tried meanwhile.
const LAST_WRITERS_ROUND: Duration = Duration::from_millis(10);

/// The random part of a name: two at once must not meet.
const RANDOM_CHARS: usize = 12;

/// A hidden folder, deleted with everything in it when it is dropped.
pub(crate) struct Staging(PathBuf);

impl Staging {
    /// Makes one in `parent`, which is made too if it is missing. On the same file system, so that what is
    /// ready can be moved into place in one step.
    pub fn new(parent: &Path, purpose: &str) -> std::io::Result<Self> {
        debug_assert!(PURPOSES.contains(&purpose));
        fs::create_dir_all(parent)?;
        let random = uuid::Uuid::new_v4().simple().to_string();
        let path = parent.join(format!("{PREFIX}{purpose}-{}", &random[..RANDOM_CHARS]));
        fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Deletes it now, and says so if that fails.
    pub fn delete(self) -> std::io::Result<()> {
        fs::remove_dir_all(&self.0)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST_WRITERS;
        // A helper of a git that was ended may still write into it.
        while let Err(error) = fs::remove_dir_all(&self.0) {
            if error.kind() != ErrorKind::DirectoryNotEmpty || Instant::now() >= deadline {
                // Gone already, or swept later.
                return;
            }
            std::thread::sleep(LAST_WRITERS_ROUND);
        }
    }
}

/// Deletes what killed programs have left in a folder.
pub(crate) fn sweep(parent: &Path, now: SystemTime) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let purpose = name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        if !purpose.is_some_and(|(purpose, _)| PURPOSES.contains(&purpose)) {
            continue;
        }
        // Of the entry itself: a link is never followed.
        let age = entry.metadata().ok().and_then(|data| data.modified().ok());
        let age = age.and_then(|modified| now.duration_since(modified).ok());
        if age.is_some_and(|age| age >= STALE_AFTER) {
            // What cannot be deleted is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_gone_when_it_is_dropped() {
        let temp = tempfile::tempdir().unwrap();
        let parent = temp.path().join("a/b");
        let staging = Staging::new(&parent, "new").unwrap();
        fs::write(staging.path().join("file"), "").unwrap();
        drop(staging);
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 0);
    }

    #[test]
    fn what_is_left_over_goes_after_a_day_and_nothing_else_does() {
        let temp = tempfile::tempdir().unwrap();
        let left = temp.path().join(".tenon-install-x");
        fs::create_dir_all(left.join("inner")).unwrap();
        fs::create_dir(temp.path().join(".tenon-other-x")).unwrap();
        fs::create_dir(temp.path().join("extension")).unwrap();
        sweep(temp.path(), SystemTime::now());
        assert!(left.exists());
        sweep(temp.path(), SystemTime::now() + 2 * STALE_AFTER);
        assert!(!left.exists());
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 2);
    }
}
