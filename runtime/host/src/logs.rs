//! The log of one extension, kept in memory.

use std::collections::VecDeque;
use std::time::SystemTime;

use serde::Serialize;
use tenon_protocol::message::LogLevel;
use tenon_protocol::message::LogRecord;

/// The most lines that are kept of one extension; older ones go first.
pub const MAX_LOG_LINES: usize = 1_000;

/// The most bytes of one entry; the rest is cut off.
pub const MAX_ENTRY_BYTES: usize = 64 * 1024;

/// The most bytes that are kept of one extension's log; older entries go first.
pub const MAX_LOG_BYTES: usize = 4 * 1024 * 1024;

/// One entry.
#[derive(Debug, Clone, Serialize)]
pub struct LogLine {
    /// Milliseconds since 1970.
    pub timestamp: u64,
    /// How loud.
    pub level: LogLevel,
    /// The text.
    pub text: String,
}

/// The newest lines of an extension's log.
#[derive(Debug, Default)]
pub struct Log {
    lines: VecDeque<LogLine>,
    bytes: usize,
}

impl Log {
    /// Adds an entry; returns it as it was kept.
    pub fn push(&mut self, record: LogRecord) -> LogLine {
        let mut text = record.text;
        if text.len() > MAX_ENTRY_BYTES {
            text.truncate(text.floor_char_boundary(MAX_ENTRY_BYTES));
            text.push_str(" ... (cut)");
        }
        self.bytes += text.len();
        while self.lines.len() >= MAX_LOG_LINES || self.bytes > MAX_LOG_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len();
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let line = LogLine { timestamp: now.as_millis() as u64, level: record.level, text };
        self.lines.push_back(line.clone());
        line
    }

    /// All entries, oldest first.
    pub fn lines(&self) -> Vec<LogLine> {
        self.lines.iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_lines_go_first() {
        let mut log = Log::default();
        for number in 0..=MAX_LOG_LINES {
            log.push(LogRecord { level: LogLevel::Info, text: number.to_string() });
        }
        let lines = log.lines();
        assert_eq!(lines.len(), MAX_LOG_LINES);
        assert_eq!(lines[0].text, "1");
    }

    #[test]
    fn neither_a_long_entry_nor_many_of_them_fill_the_memory() {
        let mut log = Log::default();
        for _ in 0..100 {
            log.push(LogRecord { level: LogLevel::Info, text: "é".repeat(MAX_ENTRY_BYTES) });
        }
        let lines = log.lines();
        assert!(lines.iter().all(|line| line.text.len() <= MAX_ENTRY_BYTES + 16));
        assert!(lines.iter().map(|line| line.text.len()).sum::<usize>() <= MAX_LOG_BYTES);
        assert!(lines.len() > 50);
    }
}
