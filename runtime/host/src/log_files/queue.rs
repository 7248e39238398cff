//! The lines that wait for the disk.

use parking_lot::Condvar;
use parking_lot::Mutex;
use parking_lot::MutexGuard;
use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use crate::logs::LogLine;

/// The most lines that wait for the disk; further ones are dropped.
pub const MAX_WAITING_LINES: usize = 10_000;

/// The most bytes of text that wait for the disk.
pub const MAX_WAITING_BYTES: usize = 8 * 1024 * 1024;

/// Lines on their way to one thread that writes them.
pub struct Queue {
    max_lines: usize,
    max_bytes: usize,
    state: Mutex<State>,
    /// There is something to take.
    came: Condvar,
    /// Something was written or given up.
    went: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Batch,
    bytes: usize,
    /// Up to which line, counted from the beginning, all is written or given up.
    done: u64,
    /// No more lines will come.
    is_closed: bool,
    /// Nobody takes lines any more.
    has_ended: bool,
    problem: Option<String>,
}

/// What is written at a time.
#[derive(Debug, Default)]
pub struct Batch {
    /// In the order in which they came.
    pub lines: Vec<(PathBuf, LogLine)>,
    /// How many came after those and found no room, by file.
    pub dropped: BTreeMap<PathBuf, u64>,
    /// How many lines there were from the beginning to the end of this batch.
    end: u64,
}

impl Queue {
    pub fn new(max_lines: usize, max_bytes: usize) -> Self {
        Self {
            max_lines,
            max_bytes,
            state: Mutex::default(),
            came: Condvar::new(),
            went: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Adds a line, or counts it if there is no room.
    pub fn push(&self, file: &Path, line: LogLine) {
        let mut state = self.lock();
        if state.has_ended {
            return;
        }
        state.waiting.end += 1;
        let is_full = state.waiting.lines.len() >= self.max_lines
            || state.bytes.saturating_add(line.text.len()) > self.max_bytes;
        // After a gap nothing may come before the note about it.
        if is_full || state.waiting.dropped.contains_key(file) {
            *state.waiting.dropped.entry(file.to_owned()).or_default() += 1;
        } else {
            state.bytes += line.text.len();
            state.waiting.lines.push((file.to_owned(), line));
        }
        self.came.notify_one();
    }

    /// Waits for lines and takes them all; `None` if there will be no more.
    pub fn take(&self) -> Option<Batch> {
        let mut state = self.lock();
        loop {
            let Batch { lines, dropped, end } = &state.waiting;
            if !lines.is_empty() || !dropped.is_empty() {
                // Counting goes on.
                let next = Batch { end: *end, ..Batch::default() };
                state.bytes = 0;
                return Some(std::mem::replace(&mut state.waiting, next));
            }
            if state.is_closed {
                return None;
            }
            self.came.wait(&mut state);
        }
    }

    /// A batch is written or given up, perhaps with a problem that was not there before.
    pub fn done(&self, batch: &Batch, problem: Option<String>) {
        let mut state = self.lock();
        state.done = batch.end;
        if problem.is_some() {
            state.problem = problem;
        }
        self.went.notify_all();
    }

    /// No more lines will come.
    pub fn close(&self) {
        self.lock().is_closed = true;
        self.came.notify_one();
    }

    /// Nobody takes lines any more.
    pub fn end(&self, problem: Option<String>) {
        let mut state = self.lock();
        state.has_ended = true;
        state.waiting = Batch::default();
        if problem.is_some() {
            state.problem = problem;
        }
        self.went.notify_all();
    }

    /// The last problem, if nobody has heard of it yet.
    pub fn problem(&self) -> Option<String> {
        self.lock().problem.take()
    }

    /// Waits until everything that has come so far is written or given up, or so long.
    pub fn wait(&self, patience: Duration) {
        let mut state = self.lock();
        let end = state.waiting.end;
        let is_waiting = |state: &mut State| state.done < end && !state.has_ended;
        // Whether it was in time changes nothing.
        let _ = self.went.wait_while_for(&mut state, is_waiting, patience);
    }
}

#[cfg(test)]
mod tests {
    use tenon_protocol::message::LogLevel;

    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine { timestamp: 0, level: LogLevel::Info, text: text.to_owned() }
    }

    fn texts(batch: &Batch) -> Vec<&str> {
        batch.lines.iter().map(|(_, line)| line.text.as_str()).collect()
    }

    #[test]
    fn lines_without_room_are_counted_by_file() {
        let queue = Queue::new(2, 1000);
        let (a, b) = (Path::new("a"), Path::new("b"));
        for (file, text) in [(a, "1"), (a, "2"), (a, "3"), (b, "4"), (a, "5")] {
            queue.push(file, line(text));
        }
        let batch = queue.take().unwrap();
        assert_eq!(texts(&batch), ["1", "2"]);
        assert_eq!(batch.dropped, BTreeMap::from([(a.to_owned(), 2), (b.to_owned(), 1)]));
        queue.done(&batch, None);
        queue.push(a, line("6"));
        let batch = queue.take().unwrap();
        assert_eq!(texts(&batch), ["6"]);
        assert!(batch.dropped.is_empty());
    }

    #[test]
    fn long_lines_fill_it_as_well_and_nothing_slips_in_after_a_gap() {
        let queue = Queue::new(100, 10);
        let a = Path::new("a");
        for text in ["12345678", "too long", "1"] {
            queue.push(a, line(text));
        }
        queue.push(Path::new("b"), line("2"));
        let batch = queue.take().unwrap();
        assert_eq!(texts(&batch), ["12345678", "2"]);
        assert_eq!(batch.dropped, BTreeMap::from([(a.to_owned(), 2)]));
    }

    #[test]
    fn after_it_is_closed_the_rest_is_taken_and_then_nothing() {
        let queue = Queue::new(100, 100);
        queue.push(Path::new("a"), line("last"));
        queue.close();
        let batch = queue.take().unwrap();
        assert_eq!(texts(&batch), ["last"]);
        queue.done(&batch, Some("disk full".to_owned()));
        assert!(queue.take().is_none());
        assert_eq!(queue.problem().as_deref(), Some("disk full"));
        assert_eq!(queue.problem(), None);
    }

    #[test]
    fn nobody_waits_once_it_has_ended() {
        let queue = Queue::new(100, 100);
        queue.push(Path::new("a"), line("never taken"));
        queue.end(None);
        queue.wait(Duration::MAX);
        queue.push(Path::new("a"), line("too late"));
        queue.wait(Duration::MAX);
    }
}
