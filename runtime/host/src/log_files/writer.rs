//! Appending to log files and putting full ones aside. Several programs may do both to the same files.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::io::ErrorKind;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use tenon_protocol::message::LogLevel;

use super::FileId;
use super::KEPT_LOG_FILES;
use super::format_line;
use super::marker;
use super::numbered;
use super::queue::Batch;
use crate::logs::LogLine;
use crate::store::make_private_folder;

/// The most log files that stay open between batches: a fraction of the thousand descriptors that a
/// process usually has.
pub const MAX_OPEN_LOG_FILES: usize = 64;

/// How long a file is left alone that could not be written: a full disk does not become less full by
/// trying.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What extensions log is nobody else's to read.
const FILE_MODE: u32 = 0o600;

/// So many writes fill a file, at least.
const PIECES_OF_FILE: u64 = 16;

/// Writes batches of lines.
pub struct Writer {
    folder: PathBuf,
    max_file_bytes: u64,
    retry_after: Duration,
    open: HashMap<PathBuf, Open>,
    /// Files that could not be written the last time.
    refused: HashMap<PathBuf, Refused>,
    /// Counts up, to tell which file was used last.
    uses: u64,
}

struct Open {
    file: Arc<File>,
    id: FileId,
    used: u64,
}

struct Refused {
    at: Instant,
    why: String,
    /// Entries that are not in the file.
    lost: u64,
    /// Half a line is at the end of the file.
    is_torn: bool,
}

/// Whole entries that are written by one call.
#[derive(Default)]
struct Piece {
    text: String,
    /// Where each entry ends.
    ends: Vec<usize>,
}

impl Piece {
    fn add(&mut self, entry: &str) {
        self.text.push_str(entry);
        self.ends.push(self.text.len());
    }
}

/// A piece could not be written.
struct Failure {
    error: std::io::Error,
    /// So many of its bytes were.
    written: usize,
    /// The last of those is in the middle of a line.
    is_torn: bool,
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self { error, written: 0, is_torn: false }
    }
}

impl Writer {
    pub fn new(folder: &Path, max_file_bytes: u64) -> Self {
        Self {
            folder: folder.to_owned(),
            max_file_bytes,
            retry_after: RETRY_AFTER,
            open: HashMap::new(),
            refused: HashMap::new(),
            uses: 0,
        }
    }

    /// Writes each line to its file, and where lines are missing how many. The answer is what went wrong,
    /// unless something did already before this batch.
    pub fn write(&mut self, batch: &Batch) -> Option<String> {
        let was_well = self.refused.is_empty();
        let mut problem = None;
        for (path, pieces) in self.pieces(batch) {
            if let Err(error) = self.write_file(path, pieces) {
                let what = || format!("{} cannot be written: {error}", path.display());
                problem.get_or_insert_with(what);
            }
        }
        self.close_idle();
        problem.filter(|_| was_well)
    }

    /// What is to be written, by file, in pieces that are short beside the length of a file.
    fn pieces<'a>(&self, batch: &'a Batch) -> BTreeMap<&'a Path, Vec<Piece>> {
        let longest = (self.max_file_bytes / PIECES_OF_FILE) as usize;
        let mut files: BTreeMap<&Path, Vec<Piece>> = BTreeMap::new();
        let mut add = |file: &'a Path, line: &LogLine| {
            let mut entry = String::new();
            format_line(line, &mut entry);
            let pieces = files.entry(file).or_default();
            match pieces.last_mut() {
                Some(piece) if piece.text.len() + entry.len() <= longest => {
                    piece.add(&entry);
                }
                _ => pieces.push(Piece { ends: vec![entry.len()], text: entry }),
            }
        };
        for (file, line) in &batch.lines {
            add(file, line);
        }
        for (file, count) in &batch.dropped {
            add(file, &note(*count, "came faster than they could be written"));
        }
        files
    }

    fn write_file(&mut self, path: &Path, pieces: Vec<Piece>) -> std::io::Result<()> {
        let mut left: usize = pieces.iter().map(|piece| piece.ends.len()).sum();
        let mut before = Piece::default();
        if let Some(refused) = self.refused.get_mut(path) {
            if refused.at.elapsed() < self.retry_after {
                refused.lost += left as u64;
                return Ok(());
            }
            if refused.is_torn {
                before.text.push('\n');
            }
            format_line(&note(refused.lost, &refused.why), &mut before.text);
        }
        for piece in std::iter::once(before).chain(pieces) {
            if let Err(failure) = self.append(path, piece.text.as_bytes()) {
                left -= piece.ends.partition_point(|&end| end <= failure.written);
                return Err(self.refuse(path, failure, left as u64));
            }
            left -= piece.ends.len();
            // Those that are lost have been told of.
            self.refused.remove(path);
        }
        Ok(())
    }

    fn refuse(&mut self, path: &Path, failure: Failure, lost: u64) -> std::io::Error {
        self.open.remove(path);
        let why = format!("could not be written: {}", failure.error);
        let new = Refused { at: Instant::now(), why, lost, is_torn: failure.is_torn };
        self.refused
            .entry(path.to_owned())
            .and_modify(|refused| {
                refused.at = new.at;
                refused.lost += lost;
                refused.is_torn |= new.is_torn;
            })
            .or_insert(new);
        failure.error
    }

    /// Adds whole lines to a file by one call, which the system does not mix with those of others.
    fn append(&mut self, path: &Path, lines: &[u8]) -> Result<(), Failure> {
        if lines.is_empty() {
            return Ok(());
        }
        let (mut file, length) = self.current(path)?;
        if self.is_full(length, lines.len()) {
            self.rotate(path, lines.len())?;
            file = self.current(path)?.0;
        }
        write_all(&file, lines)
    }

    /// The file that stands at a path now, and its length: somebody else may have put the one aside that
    /// is open, or deleted it.
    fn current(&mut self, path: &Path) -> std::io::Result<(Arc<File>, u64)> {
        self.uses += 1;
        let used = self.uses;
        let there = match std::fs::metadata(path) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if let (Some(there), Some(open)) = (&there, self.open.get_mut(path))
            && FileId::of(there) == open.id
        {
            open.used = used;
            return Ok((open.file.clone(), there.len()));
        }
        if there.is_none() {
            make_private_folder(&self.folder)?;
        }
        let file = Arc::new(own_file().append(true).open(path)?);
        let opened = file.metadata()?;
        let open = Open { file: file.clone(), id: FileId::of(&opened), used };
        self.open.insert(path.to_owned(), open);
        Ok((file, opened.len()))
    }

    fn is_full(&self, length: u64, more: usize) -> bool {
        length > 0 && length + more as u64 > self.max_file_bytes
    }

    /// Puts a full file aside, and the oldest away.
    fn rotate(&self, path: &Path, more: usize) -> std::io::Result<()> {
        let lock = own_file().write(true).truncate(false).open(self.folder.join(".lock"))?;
        match lock.try_lock() {
            Ok(()) => {}
            // Somebody is at it. Waiting for a program that may have been suspended could take for ever;
            // rather the file becomes a little too long.
            Err(TryLockError::WouldBlock) => return Ok(()),
            // This file system has no locks, and hardly two programs that are here in the same moment.
            Err(TryLockError::Error(_)) => {}
        }
        // Somebody may just have done it.
        match std::fs::metadata(path) {
            Ok(there) if self.is_full(there.len(), more) => {}
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        }
        for number in (1..KEPT_LOG_FILES).rev() {
            match std::fs::rename(numbered(path, number - 1), numbered(path, number)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Closes those that were not used for longest, if too many are open.
    fn close_idle(&mut self) {
        let excess = self.open.len().saturating_sub(MAX_OPEN_LOG_FILES);
        if excess == 0 {
            return;
        }
        let mut uses: Vec<u64> = self.open.values().map(|open| open.used).collect();
        uses.sort_unstable();
        self.open.retain(|_, open| open.used >= uses[excess]);
    }
}

/// Options for a file that is made if it is missing.
fn own_file() -> OpenOptions {
    let mut options = File::options();
    options.create(true).mode(FILE_MODE);
    options
}

/// A line that stands where others are missing.
fn note(count: u64, why: &str) -> LogLine {
    let lines = if count == 1 { "line is" } else { "lines are" };
    let mut line = marker(&format!("{count} {lines} missing here: {why}"));
    line.level = LogLevel::Warning;
    line
}

/// Like the standard library's, but tells how much was written.
fn write_all(mut file: &File, lines: &[u8]) -> Result<(), Failure> {
    let mut written = 0;
    while written < lines.len() {
        let error = match file.write(&lines[written..]) {
            Ok(0) => ErrorKind::WriteZero.into(),
            Ok(more) => {
                written += more;
                continue;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        let is_torn = lines[..written].last().is_some_and(|&byte| byte != b'\n');
        return Err(Failure { error, written, is_torn });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::log_files::queue::Queue;
    use crate::log_files::tail;

    fn line(text: &str) -> LogLine {
        LogLine { timestamp: 0, level: LogLevel::Info, text: text.to_owned() }
    }

    fn batch(lines: &[(&Path, &str)]) -> Batch {
        let queue = Queue::new(1000, 1_000_000);
        for (file, text) in lines {
            queue.push(file, line(text));
        }
        queue.take().unwrap()
    }

    fn texts(file: &Path) -> Vec<String> {
        let lines = tail(file, usize::MAX).unwrap();
        lines.iter().map(|line| line[31..].to_owned()).collect()
    }

    #[test]
    fn a_full_file_is_put_aside_and_three_are_kept() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("logs/a.log");
        let mut writer = Writer::new(file.parent().unwrap(), 1000);
        for number in 0..200 {
            assert_eq!(writer.write(&batch(&[(&file, &number.to_string())])), None);
        }
        let mut names: Vec<_> = std::fs::read_dir(temp.path().join("logs"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, [".lock", "a.log", "a.log.1", "a.log.2"]);
        for number in 0..KEPT_LOG_FILES {
            let kept = std::fs::metadata(numbered(&file, number)).unwrap();
            assert!(kept.len() <= 1000);
            assert_eq!(kept.permissions().mode() & 0o777, FILE_MODE);
        }
        let kept = texts(&file);
        let expected: Vec<_> = (200 - kept.len()..200).map(|number| number.to_string()).collect();
        assert_eq!(kept, expected);
        // The two that were put aside are full.
        assert!(kept.len() > 50, "{}", kept.len());
    }

    #[test]
    fn one_large_batch_is_spread_over_files_as_well() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.log");
        let mut writer = Writer::new(temp.path(), 16 * 100);
        let numbers: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        let lines: Vec<_> = numbers.iter().map(|text| (&*file, text.as_str())).collect();
        writer.write(&batch(&lines));
        assert!(std::fs::metadata(numbered(&file, 2)).unwrap().len() <= 16 * 100);
        assert_eq!(texts(&file), numbers[100 - texts(&file).len()..]);
    }

    #[test]
    fn a_file_that_another_program_put_aside_or_deleted_is_opened_anew() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.log");
        let mut writer = Writer::new(temp.path(), 1000);
        writer.write(&batch(&[(&file, "one")]));
        std::fs::rename(&file, numbered(&file, 1)).unwrap();
        writer.write(&batch(&[(&file, "two")]));
        assert_eq!(texts(&file), ["one", "two"]);
        std::fs::remove_file(&file).unwrap();
        writer.write(&batch(&[(&file, "three")]));
        assert_eq!(texts(&file), ["one", "three"]);
    }

    #[test]
    fn how_many_lines_were_dropped_stands_where_they_are_missing() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.log");
        let mut writer = Writer::new(temp.path(), 10_000);
        let queue = Queue::new(2, 1000);
        for text in ["1", "2", "3", "4", "5"] {
            queue.push(&file, line(text));
        }
        writer.write(&queue.take().unwrap());
        queue.push(&file, line("6"));
        writer.write(&queue.take().unwrap());
        let note = "=== 3 lines are missing here: came faster than they could be written ===";
        assert_eq!(texts(&file), ["1", "2", note, "6"]);
    }

    #[test]
    fn what_was_lost_is_counted_and_told_when_writing_works_again() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("logs");
        std::fs::write(&folder, "in the way").unwrap();
        let (a, b) = (folder.join("a.log"), folder.join("b.log"));
        let mut writer = Writer::new(&folder, 10_000);
        writer.retry_after = Duration::MAX;
        let problem = writer.write(&batch(&[(&a, "1"), (&a, "2"), (&b, "3")])).unwrap();
        assert!(problem.contains("a.log cannot be written"), "{problem}");
        std::fs::remove_file(&folder).unwrap();
        // Not tried again so soon.
        assert_eq!(writer.write(&batch(&[(&a, "4")])), None);
        assert!(!a.exists());
        writer.retry_after = Duration::ZERO;
        assert_eq!(writer.write(&batch(&[(&a, "5")])), None);
        let lines = texts(&a);
        assert!(lines[0].starts_with("=== 3 lines are missing here: could not be"), "{lines:?}");
        assert_eq!(lines[1..], ["5"]);
        writer.write(&batch(&[(&a, "6"), (&b, "7")]));
        assert_eq!(texts(&a)[1..], ["5", "6"]);
        assert!(writer.refused.is_empty());
    }

    #[test]
    fn only_so_many_files_stay_open() {
        let temp = tempfile::tempdir().unwrap();
        let files: Vec<_> = (0..MAX_OPEN_LOG_FILES + 5)
            .map(|number| temp.path().join(format!("{number:03}.log")))
            .collect();
        let mut writer = Writer::new(temp.path(), 1000);
        for text in ["one", "two"] {
            let lines: Vec<_> = files.iter().map(|file| (&**file, text)).collect();
            writer.write(&batch(&lines));
            assert_eq!(writer.open.len(), MAX_OPEN_LOG_FILES);
        }
        assert!(writer.open.contains_key(&files[MAX_OPEN_LOG_FILES + 4]));
        assert!(files.iter().all(|file| texts(file) == ["one", "two"]));
    }
}
