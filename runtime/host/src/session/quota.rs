//! How much a session keeps on disk for extensions: their files, and long results of tools. Each kind has a quota of its own, so
//! that a flood of results does not take the room of the files. The events of a session are not counted here.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::layout::FILES;

/// The folder of long results, below that of the files.
pub(super) const RESULTS: &str = "tool-results";

/// The most files that a session may have of a kind. Extensions without any rights can have them written, and must not fill
/// the disk.
const MAX_FILES: usize = 10_000;

/// The most bytes that the files of a kind may have together.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Files that extensions write into the session.
    Files,
    /// Long results. None is deleted as long as the session is there: what the agent was told refers to it.
    Results,
}

/// There is no room for a file.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoRoom {
    #[error("the session has {MAX_FILES} {what}, which is the most it may have")]
    Number { what: &'static str },
    #[error("the session's {what} may have {} MB together", MAX_BYTES / (1024 * 1024))]
    Bytes { what: &'static str },
}

/// What is being written. It counts before it is on disk, so that several at a time do not exceed the quota together.
#[derive(Default)]
pub(super) struct Incoming {
    files: Tally,
    results: Tally,
}

#[derive(Default)]
struct Tally {
    number: AtomicUsize,
    bytes: AtomicU64,
}

/// Room for one file, as long as it is being written.
pub(super) struct Room<'a> {
    tally: &'a Tally,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.tally.number.fetch_sub(1, Relaxed);
        self.tally.bytes.fetch_sub(self.bytes, Relaxed);
    }
}

impl Incoming {
    /// Room for a file of so many bytes in a session's folder. What it replaces counts until it is replaced.
    pub fn room(&self, kind: Kind, session: &Path, bytes: usize) -> Result<Room<'_>, NoRoom> {
        let (tally, what) = match kind {
            Kind::Files => (&self.files, "files"),
            Kind::Results => (&self.results, "long results"),
        };
        let bytes = bytes as u64;
        let number = tally.number.fetch_add(1, Relaxed) + 1;
        let more = tally.bytes.fetch_add(bytes, Relaxed) + bytes;
        let room = Room { tally, bytes };
        // One that has just been written counts twice for a moment, which only makes the limit come sooner.
        let (there, used) = kind.used(session);
        if there + number > MAX_FILES {
            return Err(NoRoom::Number { what });
        }
        if used + more > MAX_BYTES {
            return Err(NoRoom::Bytes { what });
        }
        Ok(room)
    }
}

impl Kind {
    /// What a path below a session's folder counts as.
    pub fn of(path: &Path) -> Self {
        if path.starts_with(Path::new(FILES).join(RESULTS)) { Self::Results } else { Self::Files }
    }

    /// How many files there are of it, and how many bytes they have.
    fn used(self, session: &Path) -> (usize, u64) {
        let results = session.join(FILES).join(RESULTS);
        let (root, left_out) = match self {
            Self::Files => (session.join(FILES), Some(results)),
            Self::Results => (results, None),
        };
        let (mut number, mut bytes) = (0, 0);
        let entries = walk(&root).into_iter();
        let counted =
            entries.filter_entry(|entry| left_out.as_deref() != Some(entry.path())).flatten();
        for entry in counted.filter(|entry| entry.file_type().is_file()) {
            number += 1;
            bytes += entry.metadata().map_or(0, |about| about.len());
        }
        (number, bytes)
    }
}

/// Everything below a folder that is no link.
pub(super) fn walk(folder: &Path) -> walkdir::WalkDir {
    walkdir::WalkDir::new(folder).follow_root_links(false)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const KINDS: [Kind; 2] = [Kind::Files, Kind::Results];

    fn folder(kind: Kind, session: &Path) -> PathBuf {
        let folder = session.join(FILES);
        let folder = if kind == Kind::Results { folder.join(RESULTS) } else { folder };
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn each_kind_has_a_limit_in_bytes() {
        for (kind, other) in [(KINDS[0], KINDS[1]), (KINDS[1], KINDS[0])] {
            let temp = tempfile::tempdir().unwrap();
            let large = folder(kind, temp.path()).join("large");
            std::fs::File::create(large).unwrap().set_len(MAX_BYTES - 10).unwrap();
            let incoming = Incoming::default();
            drop(incoming.room(kind, temp.path(), 10).unwrap());
            let refusal = incoming.room(kind, temp.path(), 11).err().unwrap().to_string();
            assert!(refusal.contains("256 MB"), "{refusal}");
            assert!(incoming.room(other, temp.path(), 11).is_ok());
        }
    }

    #[test]
    fn each_kind_has_a_limit_in_number() {
        for (kind, other) in [(KINDS[0], KINDS[1]), (KINDS[1], KINDS[0])] {
            let temp = tempfile::tempdir().unwrap();
            let folder = folder(kind, temp.path());
            for number in 0..MAX_FILES {
                std::fs::File::create(folder.join(number.to_string())).unwrap();
            }
            let incoming = Incoming::default();
            let refusal = incoming.room(kind, temp.path(), 1).err().unwrap().to_string();
            assert!(refusal.contains("10000"), "{refusal}");
            assert!(incoming.room(other, temp.path(), 1).is_ok());
        }
    }

    #[test]
    fn what_is_being_written_counts() {
        let temp = tempfile::tempdir().unwrap();
        let incoming = Incoming::default();
        let most = MAX_BYTES as usize;
        let first = incoming.room(Kind::Results, temp.path(), most).unwrap();
        assert!(incoming.room(Kind::Results, temp.path(), 1).is_err());
        drop(first);
        assert!(incoming.room(Kind::Results, temp.path(), most).is_ok());
    }

    #[test]
    fn a_path_counts_as_what_it_is() {
        assert_eq!(Kind::of(Path::new("files/a")), Kind::Files);
        assert_eq!(Kind::of(Path::new("files/tool-results/a.txt")), Kind::Results);
        assert_eq!(Kind::of(Path::new("files/tool-results-of-mine")), Kind::Files);
    }
}
