//! The logs of extensions in files: `logs` in the home folder, with a file for each extension that starts
//! anew when it is full. Several programs may write the same file.

mod queue;
mod reading;
mod writer;

use std::fmt::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Once;
use std::time::Duration;

use tenon_protocol::message::LogLevel;

pub use self::queue::MAX_WAITING_BYTES;
pub use self::queue::MAX_WAITING_LINES;
pub use self::reading::Follow;
pub use self::reading::tail;
pub use self::writer::MAX_OPEN_LOG_FILES;

use self::queue::Queue;
use self::writer::Writer;
use crate::discovery::Scope;
use crate::logs::LogLine;
use crate::logs::MAX_ENTRY_BYTES;

/// How long a log file may become, in bytes; then it is put aside. Some thousands of lines: enough to look
/// back, and opened quickly by any editor.
pub const MAX_LOG_FILE_BYTES: u64 = 1024 * 1024;

/// How many files are kept of one log: the one that is written and those that were put aside.
pub const KEPT_LOG_FILES: usize = 3;

/// The most bytes of an extension's name that become part of the name of its log; file systems allow
/// names of 255.
const MAX_NAME_BYTES: usize = 100;

/// How long the end of the program waits for the disk.
const FLUSH_PATIENCE: Duration = Duration::from_secs(5);

/// The folder of logs. Clones share one queue and one thread.
#[derive(Clone)]
pub struct LogFiles(Arc<Inner>);

struct Inner {
    folder: PathBuf,
    max_file_bytes: u64,
    queue: Arc<Queue>,
    thread: Once,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What was sent is still written.
        self.queue.close();
    }
}

impl LogFiles {
    /// The logs in a home folder. Nothing is made before the first line is written.
    pub fn new(home: &Path) -> Self {
        Self::with(home, MAX_LOG_FILE_BYTES)
    }

    fn with(home: &Path, max_file_bytes: u64) -> Self {
        // The thread that writes may have another working directory.
        let folder = std::path::absolute(home).unwrap_or_else(|_| home.to_owned()).join("logs");
        let queue = Arc::new(Queue::new(MAX_WAITING_LINES, MAX_WAITING_BYTES));
        Self(Arc::new(Inner { folder, max_file_bytes, queue, thread: Once::new() }))
    }

    /// The file of an extension's log. Extensions of one name in two repositories have two files.
    pub fn file_for(&self, scope: Scope, name: &str, folder: &Path) -> PathBuf {
        let safe = safe_name(name);
        // Two names may have become one, too.
        let mark = if scope == Scope::User && safe == name {
            String::new()
        } else {
            let place = std::fs::canonicalize(folder).or_else(|_| std::path::absolute(folder));
            let place = place.unwrap_or_else(|_| folder.to_owned());
            let mut hash = crate::extension::hash(place.as_os_str().as_encoded_bytes());
            hash.truncate(8);
            format!("-{hash}")
        };
        self.0.folder.join(format!("{scope}-{safe}{mark}.log"))
    }

    /// The file of a log that is the program's own. No extension's log has such a name: those begin with a scope.
    pub fn file_of_program(&self, name: &str) -> PathBuf {
        self.0.folder.join(format!("{name}.log"))
    }

    /// Sends a line to a file that [`Self::file_for`] named. This neither waits nor fails: if too many
    /// lines wait, this one is dropped, and the file will say how many were.
    pub fn write(&self, file: &Path, line: &LogLine) {
        self.0.thread.call_once(|| self.start());
        self.0.queue.push(file, cut(line));
    }

    fn start(&self) {
        let queue = self.0.queue.clone();
        let mut writer = Writer::new(&self.0.folder, self.0.max_file_bytes);
        let run = move || {
            let _end = EndOnDrop(&queue);
            while let Some(batch) = queue.take() {
                let problem = writer.write(&batch);
                queue.done(&batch, problem);
            }
        };
        // The thread ends when the last clone is gone and everything is written.
        if let Err(error) = std::thread::Builder::new().name("tenon-logs".to_owned()).spawn(run) {
            self.0.queue.end(Some(format!("logs cannot be written: no thread: {error}")));
        }
    }

    /// Why lines do not reach their files, said once; the next time it happens after all was well it is
    /// said again.
    pub fn problem(&self) -> Option<String> {
        self.0.queue.problem()
    }

    /// Waits until everything sent so far is in its file or given up; not for ever if the disk does not
    /// answer.
    pub fn flush(&self) {
        self.0.queue.wait(FLUSH_PATIENCE);
    }
}

/// Nobody waits for a thread that is gone, however it went.
struct EndOnDrop<'a>(&'a Queue);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end(None);
    }
}

/// A line in which the host says what happens to the extension, such as `=== starting generation 3 ===`
/// for `starting generation 3`.
pub fn marker(text: &str) -> LogLine {
    LogLine {
        timestamp: chrono::Utc::now().timestamp_millis().unsigned_abs(),
        level: LogLevel::Info,
        text: format!("=== {text} ==="),
    }
}

/// A copy that is not too long.
fn cut(line: &LogLine) -> LogLine {
    let LogLine { timestamp, level, ref text } = *line;
    let mut text = text.clone();
    // Those that were cut already have a note at the end.
    if text.len() > MAX_ENTRY_BYTES + 64 {
        text.truncate(text.floor_char_boundary(MAX_ENTRY_BYTES));
        text.push_str(" ... (cut)");
    }
    LogLine { timestamp, level, text }
}

/// An entry as it stands in the file. Only the first line of a text begins at the left, so that no text
/// can pass for other entries.
fn format_line(line: &LogLine, out: &mut String) {
    let time = i64::try_from(line.timestamp)
        .ok()
        .and_then(chrono::DateTime::<chrono::Utc>::from_timestamp_millis)
        .unwrap_or_default()
        .to_rfc3339_opts(chrono::SecondsFormat::Millis, true);
    let level = match line.level {
        LogLevel::Info => "INFO",
        LogLevel::Warning => "WARN",
        LogLevel::Error => "ERROR",
    };
    let mut lines = line.text.trim_end_matches(['\n', '\r']).split('\n');
    let first = lines.next().unwrap_or_default().trim_end_matches('\r');
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{time} {level:<5} {first}");
    for line in lines {
        let _ = writeln!(out, "    {}", line.trim_end_matches('\r'));
    }
}

/// A name without anything that means something in a path, and not too long.
fn safe_name(name: &str) -> String {
    let is_safe = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut safe: String = name.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    safe.truncate(safe.floor_char_boundary(MAX_NAME_BYTES));
    safe
}

/// A log file that was put aside, the newest first: `x.log.1` for `x.log`. The file itself is number zero.
fn numbered(file: &Path, number: usize) -> PathBuf {
    if number == 0 {
        return file.to_owned();
    }
    let mut name = file.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Tells one file from another, also when it was renamed. It holds as long as the file is open: the
/// number of a file that is gone is given to a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileId(u64, u64);

impl FileId {
    fn of(file: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self(file.dev(), file.ino())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// 2026-01-31T12:34:56.789Z
    const TIME: u64 = 1_769_862_896_789;

    /// How long to wait for what must be written: only a failing test waits so long.
    const PATIENCE: Duration = Duration::from_secs(60);

    /// As [`LogFiles::flush`], but for a disk and a thread that take longer.
    fn flush(logs: &LogFiles) {
        logs.0.queue.wait(PATIENCE);
    }

    fn line(text: &str) -> LogLine {
        LogLine { timestamp: TIME, level: LogLevel::Info, text: text.to_owned() }
    }

    fn formatted(line: &LogLine) -> String {
        let mut text = String::new();
        format_line(line, &mut text);
        text
    }

    #[test]
    fn lines_arrive_in_order_and_formatted() {
        let temp = tempfile::tempdir().unwrap();
        let logs = LogFiles::new(temp.path());
        let file = logs.file_for(Scope::User, "a", Path::new("/a"));
        let other = logs.file_for(Scope::User, "b", Path::new("/b"));
        for number in 0..100 {
            logs.write(&file, &line(&number.to_string()));
            logs.write(&other, &line("other"));
        }
        flush(&logs);
        let text = std::fs::read_to_string(&file).unwrap();
        let expected: String =
            (0..100).map(|number| format!("2026-01-31T12:34:56.789Z INFO  {number}\n")).collect();
        assert_eq!(text, expected);
        assert_eq!(std::fs::read_to_string(&other).unwrap().lines().count(), 100);
        assert_eq!(logs.problem(), None);
    }

    #[test]
    fn what_was_sent_is_written_when_the_last_clone_is_gone() {
        let temp = tempfile::tempdir().unwrap();
        let logs = LogFiles::new(temp.path());
        let file = logs.file_for(Scope::User, "a", Path::new("/a"));
        logs.write(&file, &line("last words"));
        let queue = logs.0.queue.clone();
        drop(logs);
        queue.wait(PATIENCE);
        assert!(std::fs::read_to_string(&file).unwrap().ends_with("last words\n"));
    }

    #[test]
    fn each_level_has_its_word_and_further_lines_are_indented() {
        let mut entry = line("first\r\n2026-01-31T12:34:56.789Z ERROR forged\n\nlast\n");
        entry.level = LogLevel::Warning;
        assert_eq!(
            formatted(&entry),
            "2026-01-31T12:34:56.789Z WARN  first\n    2026-01-31T12:34:56.789Z ERROR forged\n\
             \x20   \n    last\n"
        );
        entry = line("");
        entry.level = LogLevel::Error;
        assert_eq!(formatted(&entry), "2026-01-31T12:34:56.789Z ERROR \n");
        assert!(formatted(&marker("stopped")).ends_with("Z INFO  === stopped ===\n"));
    }

    #[test]
    fn a_long_entry_is_cut() {
        let long = cut(&line(&"é".repeat(MAX_ENTRY_BYTES)));
        assert!(long.text.len() <= MAX_ENTRY_BYTES + 16);
        assert!(long.text.ends_with(" ... (cut)"));
    }

    #[test]
    fn a_log_is_named_after_scope_name_and_place() {
        let logs = LogFiles::new(Path::new("/home"));
        let name = |scope, name: &str, folder: &str| {
            let file = logs.file_for(scope, name, Path::new(folder));
            assert_eq!(file.parent(), Some(Path::new("/home/logs")));
            file.file_name().unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(name(Scope::User, "a", "/x/a"), "user-a.log");
        let here = name(Scope::Project, "a", "/x/a");
        assert!(here.starts_with("project-a-") && here.len() == "project-a-01234567.log".len());
        assert_eq!(name(Scope::Project, "a", "/x/a"), here);
        assert_ne!(name(Scope::Project, "a", "/y/a"), here);
        assert_ne!(name(Scope::Folder, "a", "/x/a"), here);
        assert_ne!(name(Scope::User, "a b", "/x/a b"), name(Scope::User, "a_b", "/x/a_b"));
        assert!(!name(Scope::User, "../a/\0", "/x").contains(['/', '\0']));
        assert!(name(Scope::Project, &"é".repeat(200), "/x").len() < 200);
    }

    #[test]
    fn two_programs_that_write_one_file_lose_no_line_and_mix_only_whole_ones() {
        const LINES: usize = 2_000;
        let temp = tempfile::tempdir().unwrap();
        let text = |writer: usize, number: usize| format!("writer {writer} line {number:04}");
        // Full once or twice, so that the three files hold everything.
        let entry = formatted(&line(&text(0, 0))).len() as u64;
        let max_bytes = entry * LINES as u64;
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let home = temp.path();
                scope.spawn(move || {
                    let logs = LogFiles::with(home, max_bytes);
                    let file = logs.file_for(Scope::User, "a", Path::new("/a"));
                    for number in 0..LINES {
                        logs.write(&file, &line(&text(writer, number)));
                        if number % 50 == 0 {
                            flush(&logs);
                        }
                    }
                    flush(&logs);
                    assert_eq!(logs.problem(), None);
                });
            }
        });
        let logs = LogFiles::new(temp.path());
        let file = logs.file_for(Scope::User, "a", Path::new("/a"));
        assert!(numbered(&file, 1).exists());
        let found = tail(&file, usize::MAX).unwrap();
        assert_eq!(found.len(), 2 * LINES);
        let found: BTreeSet<_> = found.into_iter().collect();
        for writer in 0..2 {
            for number in 0..LINES {
                let entry = formatted(&line(&text(writer, number)));
                assert!(found.contains(entry.trim_end()), "{entry}");
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_reported_once_and_fails_nobody() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("logs"), "in the way").unwrap();
        let logs = LogFiles::new(temp.path());
        let file = logs.file_for(Scope::User, "a", Path::new("/a"));
        logs.write(&file, &line("one"));
        flush(&logs);
        let problem = logs.problem().unwrap();
        assert!(problem.contains("user-a.log cannot be written"), "{problem}");
        logs.write(&file, &line("two"));
        flush(&logs);
        assert_eq!(logs.problem(), None);
    }
}
