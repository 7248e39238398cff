//! What an agent writes to its standard error: the last lines for a report, everything to a log file.
//!
//! Whoever reads it never waits for the disk, so an agent never waits for us.

use std::collections::VecDeque;
use std::fs::DirBuilder;
use std::fs::File;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use parking_lot::MutexGuard;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Lines that are kept for a report: enough for the trace of an error.
pub const LAST_LINES: usize = 50;

/// The longest of these lines, in bytes.
pub const MAX_LINE_BYTES: usize = 2_000;

/// How long a log file may become, in bytes; then it is put aside, in the place of the one before.
pub const MAX_LOG_BYTES: u64 = 1024 * 1024;

/// Logs that are kept in the folder; every session makes one.
pub const MAX_LOGS: usize = 200;

/// How much is read at a time, in bytes.
const PIECE_BYTES: usize = 16 * 1024;

/// Pieces that wait for the disk; further ones are not written.
const MAX_WAITING: usize = 64;

/// How much is written at a time, in bytes.
const BATCH_BYTES: usize = 256 * 1024;

/// Standard error may contain what is nobody else's to read.
const FOLDER_MODE: u32 = 0o700;

/// The same for the files.
const FILE_MODE: u32 = 0o600;

/// The last lines.
#[derive(Default)]
pub struct Tail(Mutex<Lines>);

#[derive(Default)]
struct Lines {
    done: VecDeque<String>,
    /// The beginning of the line that has not ended.
    open: Vec<u8>,
}

impl Tail {
    /// The last lines, the one that has not ended among them; without colours and other control characters.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.lock();
        let mut all: Vec<_> = lines.done.iter().cloned().chain(plain(&lines.open)).collect();
        all.drain(..all.len().saturating_sub(LAST_LINES));
        all
    }

    fn add(&self, bytes: &[u8]) {
        let mut lines = self.lock();
        let mut pieces = bytes.split(|byte| matches!(byte, b'\n' | b'\r'));
        lines.extend(pieces.next().unwrap_or_default());
        for piece in pieces {
            lines.end();
            lines.extend(piece);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lock()
    }
}

impl Lines {
    fn extend(&mut self, piece: &[u8]) {
        let room = MAX_LINE_BYTES.saturating_sub(self.open.len());
        self.open.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    fn end(&mut self) {
        if let Some(line) = plain(&self.open) {
            if self.done.len() == LAST_LINES {
                self.done.pop_front();
            }
            self.done.push_back(line);
        }
        self.open.clear();
    }
}

/// A line as text that does nothing to a terminal; nothing if there is nothing to see.
fn plain(line: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(line);
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_sequence(&mut chars),
            '\t' => plain.push(c),
            _ if c.is_control() => {}
            _ => plain.push(c),
        }
    }
    plain.truncate(plain.floor_char_boundary(MAX_LINE_BYTES));
    plain.truncate(plain.trim_end().len());
    (!plain.is_empty()).then_some(plain)
}

/// Skips what follows an escape character.
fn skip_sequence(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        // Parameters, up to a letter or the like.
        Some('[') => {
            chars.find(|c| ('@'..='~').contains(c));
        }
        // A text, up to its end.
        Some(']') => {
            chars.find(|c| matches!(c, '\u{7}' | '\u{1b}'));
        }
        _ => {}
    }
}

/// The standard error of one process, on its way to the log.
pub struct StderrLog {
    tail: Arc<Tail>,
    task: JoinHandle<()>,
}

impl StderrLog {
    /// Reads until there is nothing more to come. The file is made when the first byte comes; `about` says
    /// in it whose words follow.
    pub fn read(
        stderr: impl AsyncRead + Send + Unpin + 'static,
        file: PathBuf,
        about: String,
    ) -> Self {
        let tail = Arc::<Tail>::default();
        let log = LogFile { path: file, about, open: None, max_bytes: MAX_LOG_BYTES };
        let task = tokio::spawn(collect(stderr, tail.clone(), log));
        Self { tail, task }
    }

    /// The last lines.
    pub fn tail(&self) -> Arc<Tail> {
        self.tail.clone()
    }

    /// Waits until everything was read and written, but not for ever: somebody else may have the pipe.
    pub async fn finished(self, patience: Duration) {
        let _ = tokio::time::timeout(patience, self.task).await;
    }
}

async fn collect(mut stderr: impl AsyncRead + Unpin, tail: Arc<Tail>, log: LogFile) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    let lost = Arc::<AtomicU64>::default();
    let writer = tokio::spawn(write(receiver, log, lost.clone()));
    let mut piece = vec![0; PIECE_BYTES];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        tail.add(&piece[..count]);
        if sender.try_send(piece[..count].to_vec()).is_err() {
            lost.fetch_add(count as u64, Ordering::Relaxed);
        }
    }
    drop(sender);
    // It cannot panic, and nobody cancels it.
    let _ = writer.await;
}

async fn write(mut pieces: mpsc::Receiver<Vec<u8>>, mut log: LogFile, lost: Arc<AtomicU64>) {
    loop {
        let next = pieces.recv().await;
        let is_last = next.is_none();
        let mut batch = next.unwrap_or_default();
        while batch.len() < BATCH_BYTES
            && let Ok(more) = pieces.try_recv()
        {
            batch.extend(more);
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            batch.extend(format!("\n[{lost} bytes were not written: too many at once]\n").bytes());
        }
        if batch.is_empty() {
            return;
        }
        let written = tokio::task::spawn_blocking(move || {
            // Without its log an agent is as good as with it.
            let _ = log.append(&batch);
            log
        });
        match written.await {
            Ok(back) if !is_last => log = back,
            _ => return,
        }
    }
}

struct LogFile {
    path: PathBuf,
    about: String,
    open: Option<(File, u64)>,
    max_bytes: u64,
}

impl LogFile {
    fn append(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let (mut file, mut size) = match self.open.take() {
            Some(open) => open,
            None => self.begin()?,
        };
        let more = bytes.len() as u64;
        if size > 0 && size + more > self.max_bytes {
            let mut aside = self.path.clone().into_os_string();
            aside.push(".1");
            std::fs::rename(&self.path, aside)?;
            (file, size) = self.open()?;
        }
        file.write_all(bytes)?;
        self.open = Some((file, size + more));
        Ok(())
    }

    /// Opens the file for the first time: another process may have written to it before.
    fn begin(&self) -> std::io::Result<(File, u64)> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
            prune(folder, MAX_LOGS);
        }
        let (mut file, size) = self.open()?;
        let time = chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let head = format!("=== {time} {} ===\n", self.about);
        file.write_all(head.as_bytes())?;
        Ok((file, size + head.len() as u64))
    }

    fn open(&self) -> std::io::Result<(File, u64)> {
        let file = OpenOptions::new().create(true).append(true).mode(FILE_MODE).open(&self.path)?;
        let size = file.metadata()?.len();
        Ok((file, size))
    }
}

/// Deletes the oldest files so that there is room for one more. What cannot be deleted stays.
fn prune(folder: &Path, most: usize) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut files: Vec<_> = entries
        .flatten()
        .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
        .collect();
    let too_many = (files.len() + 1).saturating_sub(most);
    files.sort();
    for (_, file) in files.into_iter().take(too_many) {
        let _ = std::fs::remove_file(file);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::PermissionsExt;

    use tokio::io::AsyncWriteExt;

    use super::*;

    fn tail_of(text: &[u8]) -> Vec<String> {
        let tail = Tail::default();
        tail.add(text);
        tail.lines()
    }

    fn log(path: &Path, max_bytes: u64) -> LogFile {
        LogFile { path: path.to_owned(), about: "test".into(), open: None, max_bytes }
    }

    #[test]
    fn the_last_lines_are_kept_and_the_open_one_is_among_them() {
        let text: String = (0..60).map(|number| format!("line {number}\n")).collect();
        let lines = tail_of(format!("{text}open").as_bytes());
        assert_eq!(lines.len(), LAST_LINES);
        assert_eq!(lines[0], "line 11");
        assert_eq!(lines[LAST_LINES - 1], "open");
    }

    #[test]
    fn a_line_that_comes_in_pieces_is_one_line() {
        let tail = Tail::default();
        for piece in [&b"he"[..], b"l", b"lo\nwor", b"", b"ld\n"] {
            tail.add(piece);
        }
        assert_eq!(tail.lines(), ["hello", "world"]);
    }

    #[test]
    fn a_long_line_is_cut_and_what_follows_is_not_lost() {
        let long = "é".repeat(MAX_LINE_BYTES);
        let lines = tail_of(format!("{long}\nnext\n").as_bytes());
        assert_eq!(lines.len(), 2);
        assert!(lines[0].len() <= MAX_LINE_BYTES && lines[0].len() > MAX_LINE_BYTES - 4);
        assert_eq!(lines[1], "next");
        // Every byte of these becomes a character of three.
        assert!(tail_of(&[0xff; MAX_LINE_BYTES])[0].len() <= MAX_LINE_BYTES);
    }

    #[test]
    fn nothing_that_would_change_a_terminal_is_kept() {
        let text = b"\x1b[1;31mred\x1b[0m and \x1b]0;title\x07plain\x07\n  \n50%\r100%\r\n";
        assert_eq!(tail_of(text), ["red and plain", "50%", "100%"]);
    }

    #[test]
    fn a_full_log_is_put_aside_once() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("agents/a-1.log");
        let mut log = log(&path, 100);
        for number in 0..5 {
            log.append(format!("{number}{}\n", "x".repeat(60)).as_bytes()).unwrap();
        }
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with('4') && text.len() <= 100, "{text}");
        let aside = std::fs::read_to_string(path.with_extension("log.1")).unwrap();
        assert!(aside.starts_with('3'), "{aside}");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 2);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), FILE_MODE);
        assert_eq!(mode(path.parent().unwrap()), FOLDER_MODE);
    }

    #[test]
    fn a_log_that_is_there_is_continued() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.log");
        log(&path, 1_000).append(b"one\n").unwrap();
        log(&path, 1_000).append(b"two\n").unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), lines[1], lines[3]), (4, "one", "two"));
        assert!(lines[0].starts_with("=== ") && lines[0].ends_with("Z test ==="), "{text}");
    }

    #[test]
    fn the_oldest_logs_make_room() {
        let temp = tempfile::tempdir().unwrap();
        let old = std::time::SystemTime::UNIX_EPOCH;
        for number in 0..5_u64 {
            let file = File::create(temp.path().join(format!("{number}.log"))).unwrap();
            file.set_modified(old + Duration::from_secs(100 - number)).unwrap();
        }
        prune(temp.path(), 3);
        let left = |number: u64| temp.path().join(format!("{number}.log")).exists();
        assert_eq!([0, 1, 2, 3, 4].map(left), [true, true, false, false, false]);
    }

    #[tokio::test]
    async fn what_was_written_is_in_the_log_when_it_is_finished() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.log");
        let (mut agent, ours) = tokio::io::duplex(64);
        let log = StderrLog::read(ours, path.clone(), "test".into());
        let tail = log.tail();
        agent.write_all(b"first\nlast").await.unwrap();
        drop(agent);
        log.finished(Duration::from_secs(600)).await;
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("first\nlast"));
        assert_eq!(tail.lines(), ["first", "last"]);
    }

    #[tokio::test]
    async fn a_silent_agent_leaves_no_file() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("agents/a.log");
        let log = StderrLog::read(tokio::io::empty(), path.clone(), "test".into());
        log.finished(Duration::from_secs(600)).await;
        assert!(!path.parent().unwrap().exists());
    }

    #[tokio::test]
    async fn an_agent_does_not_wait_for_a_disk_that_hangs() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("a.log");
        // Opening it takes until somebody reads from it.
        let name = std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap();
        // SAFETY: the name is a terminated text that outlives the call.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        let (mut agent, ours) = tokio::io::duplex(1024);
        let log = StderrLog::read(ours, path.clone(), "test".into());
        let tail = log.tail();
        let flood = "0123456789abcde\n".repeat(4 * 1024);
        for _ in 0..64 {
            agent.write_all(flood.as_bytes()).await.unwrap();
        }
        agent.write_all(b"last words").await.unwrap();
        drop(agent);
        // The disk is back.
        let reader = std::thread::spawn(move || {
            let mut text = String::new();
            File::open(path).unwrap().read_to_string(&mut text).unwrap();
            text
        });
        log.finished(Duration::from_secs(600)).await;
        assert_eq!(tail.lines().last().map(String::as_str), Some("last words"));
        let text = reader.join().unwrap();
        assert!(text.contains("bytes were not written"), "nothing was lost: {} bytes", text.len());
    }
}
