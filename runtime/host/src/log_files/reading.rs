//! Reading a log: its last lines, and what is added to it.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;

use super::FileId;
use super::KEPT_LOG_FILES;
use super::numbered;

/// How much is read at a time, from the end, in bytes.
const BLOCK_BYTES: u64 = 64 * 1024;

/// The last lines of a log, oldest first, also from files that were put aside. A log that was never
/// written has none.
pub fn tail(file: &Path, lines: usize) -> std::io::Result<Vec<String>> {
    Follow::new(file, lines).next_lines()
}

/// Reads what is added to a log.
pub struct Follow {
    path: PathBuf,
    /// How many lines to begin with; `None` once that is done.
    first: Option<usize>,
    /// The files of the log, newest first. They stay open, because only then can they be told from new
    /// ones, and because another program may still be adding to one that was just put aside.
    files: Vec<Source>,
}

/// A file and how far it was read.
struct Source {
    file: File,
    id: FileId,
    offset: u64,
}

impl Follow {
    /// Begins with the last lines of a log.
    pub fn new(file: &Path, lines: usize) -> Self {
        Self { path: file.to_owned(), first: Some(lines), files: Vec::new() }
    }

    /// At first the last lines, then what was added since. Does not wait: there may be nothing.
    pub fn next_lines(&mut self) -> std::io::Result<Vec<String>> {
        self.find_new()?;
        if let Some(lines) = self.first {
            let last = self.last_lines(lines)?;
            self.first = None;
            return Ok(last);
        }
        let mut lines = Vec::new();
        for source in self.files.iter_mut().rev() {
            source.read_on(&mut lines)?;
        }
        self.files.truncate(KEPT_LOG_FILES);
        Ok(lines)
    }

    /// Opens the files that are newer than those we know.
    fn find_new(&mut self) -> std::io::Result<()> {
        let mut new: Vec<Source> = Vec::new();
        for number in 0..KEPT_LOG_FILES {
            let file = match File::open(numbered(&self.path, number)) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let id = FileId::of(&file.metadata()?);
            if self.files.iter().any(|known| known.id == id) {
                break;
            }
            // It may have been put aside between two looks.
            if new.iter().all(|known| known.id != id) {
                new.push(Source { file, id, offset: 0 });
            }
        }
        self.files.splice(0..0, new);
        Ok(())
    }

    fn last_lines(&mut self, lines: usize) -> std::io::Result<Vec<String>> {
        let mut last: Vec<String> = Vec::new();
        for source in &mut self.files {
            let mut older = source.last_lines(lines - last.len())?;
            older.append(&mut last);
            last = older;
        }
        Ok(last)
    }
}

impl Source {
    /// The last lines of the file; reading goes on behind them.
    fn last_lines(&mut self, lines: usize) -> std::io::Result<Vec<String>> {
        let end = self.file.metadata()?.len();
        let (mut start, mut blocks, mut breaks) = (end, Vec::new(), 0);
        // One more than lines, because a line begins behind the break of the one before. The end of the
        // last whole line has to be found in any case.
        while start > 0 && breaks <= lines {
            let from = start.saturating_sub(BLOCK_BYTES);
            let mut block = vec![0; (start - from) as usize];
            self.file.read_exact_at(&mut block, from)?;
            breaks += block.iter().filter(|&&byte| byte == b'\n').count();
            blocks.push(block);
            start = from;
        }
        blocks.reverse();
        let text = blocks.concat();
        let whole = whole_lines(&text);
        self.offset = start + whole.len() as u64;
        let mut found = split(whole);
        Ok(found.split_off(found.len().saturating_sub(lines)))
    }

    /// Adds the whole lines that were written since.
    fn read_on(&mut self, lines: &mut Vec<String>) -> std::io::Result<()> {
        let length = self.file.metadata()?.len();
        if length < self.offset {
            // Somebody emptied it.
            self.offset = 0;
        }
        if length == self.offset {
            return Ok(());
        }
        let mut text = vec![0; (length - self.offset) as usize];
        match self.file.read_exact_at(&mut text, self.offset) {
            Ok(()) => {}
            // Emptied just now: noticed the next time.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        }
        let whole = whole_lines(&text);
        self.offset += whole.len() as u64;
        lines.extend(split(whole));
        Ok(())
    }
}

/// Without the half line at the end, which somebody may be writing.
fn whole_lines(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    &text[..end]
}

/// Each line without its end.
fn split(whole: &[u8]) -> Vec<String> {
    let lines = whole.split_inclusive(|&byte| byte == b'\n');
    lines.map(|line| String::from_utf8_lossy(&line[..line.len() - 1]).into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn append(file: &Path, text: &str) {
        let mut file = File::options().create(true).append(true).open(file).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// What the writer does to a full file.
    fn rotate(file: &Path) {
        for number in (1..KEPT_LOG_FILES).rev() {
            let _ = std::fs::rename(numbered(file, number - 1), numbered(file, number));
        }
    }

    #[test]
    fn the_last_lines_are_found_across_files() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.log");
        assert!(tail(&file, 10).unwrap().is_empty());
        append(&numbered(&file, 2), "1\n2\n");
        append(&numbered(&file, 1), "3\n4\n");
        append(&file, "5\n\n6\nhalf");
        assert_eq!(tail(&file, 2).unwrap(), ["", "6"]);
        assert_eq!(tail(&file, 3).unwrap(), ["5", "", "6"]);
        assert_eq!(tail(&file, 4).unwrap(), ["4", "5", "", "6"]);
        assert_eq!(tail(&file, 6).unwrap(), ["2", "3", "4", "5", "", "6"]);
        assert_eq!(tail(&file, 99).unwrap(), ["1", "2", "3", "4", "5", "", "6"]);
        assert!(tail(&file, 0).unwrap().is_empty());
    }

    #[test]
    fn long_lines_are_found_across_blocks() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.log");
        let long = |text: &str| text.repeat(BLOCK_BYTES as usize);
        append(&file, &format!("{}\n{}\nx\n", long("a"), long("é")));
        assert_eq!(tail(&file, 1).unwrap(), ["x"]);
        assert_eq!(tail(&file, 2).unwrap(), [long("é"), "x".to_owned()]);
        assert_eq!(tail(&file, 3).unwrap(), [long("a"), long("é"), "x".to_owned()]);
    }

    #[test]
    fn what_is_added_is_followed_line_by_line() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.log");
        let mut follow = Follow::new(&file, 1);
        assert!(follow.next_lines().unwrap().is_empty());
        append(&file, "1\n2\nha");
        assert_eq!(follow.next_lines().unwrap(), ["1", "2"]);
        assert!(follow.next_lines().unwrap().is_empty());
        append(&file, "lf\n3\n");
        assert_eq!(follow.next_lines().unwrap(), ["half", "3"]);
        let mut late = Follow::new(&file, 1);
        assert_eq!(late.next_lines().unwrap(), ["3"]);
        append(&file, "4\n");
        assert_eq!(late.next_lines().unwrap(), ["4"]);
        let mut none = Follow::new(&file, 0);
        assert!(none.next_lines().unwrap().is_empty());
        append(&file, "5\n");
        assert_eq!(none.next_lines().unwrap(), ["5"]);
    }

    #[test]
    fn a_log_is_followed_when_its_file_is_put_aside() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.log");
        append(&file, "1\n");
        let mut follow = Follow::new(&file, 9);
        assert_eq!(follow.next_lines().unwrap(), ["1"]);
        append(&file, "2\n");
        rotate(&file);
        assert_eq!(follow.next_lines().unwrap(), ["2"]);
        append(&file, "4\n");
        // From a program that has not noticed yet.
        append(&numbered(&file, 1), "3\n");
        assert_eq!(follow.next_lines().unwrap(), ["3", "4"]);
        // Twice between two looks.
        append(&file, "5\n");
        rotate(&file);
        append(&file, "6\n");
        rotate(&file);
        append(&file, "7\n");
        assert_eq!(follow.next_lines().unwrap(), ["5", "6", "7"]);
        // So often that the number of a file that is gone may have been given to a new one.
        for number in 8..40 {
            rotate(&file);
            append(&file, &format!("{number}\n"));
            assert_eq!(follow.next_lines().unwrap(), [number.to_string()]);
        }
        assert!(follow.files.len() <= KEPT_LOG_FILES);
    }

    #[test]
    fn a_log_is_followed_when_its_file_is_emptied_or_deleted() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp.path().join("a.log");
        append(&numbered(&file, 1), "old\n");
        append(&file, "1\n2\n");
        let mut follow = Follow::new(&file, 1);
        assert_eq!(follow.next_lines().unwrap(), ["2"]);
        std::fs::write(&file, "3\n").unwrap();
        assert_eq!(follow.next_lines().unwrap(), ["3"]);
        std::fs::remove_file(&file).unwrap();
        assert!(follow.next_lines().unwrap().is_empty());
        append(&file, "4\n");
        assert_eq!(follow.next_lines().unwrap(), ["4"]);
    }
}
