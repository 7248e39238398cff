//! The log of one extension, kept in memory.

use std::collections::VecDeque;
use std::time::SystemTime;

use serde::Serialize;
use tenon_isolate::message::LogLevel;
use tenon_isolate::message::LogRecord;

/// The most lines that are kept of one extension; older ones go first.
pub const MAX_LOG_LINES: usize = 1_000;

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
pub struct Log(VecDeque<LogLine>);

impl Log {
    /// Adds an entry.
    pub fn push(&mut self, record: LogRecord) {
        if self.0.len() == MAX_LOG_LINES {
            self.0.pop_front();
        }
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.0.push_back(LogLine {
            timestamp: now.as_millis() as u64,
            level: record.level,
            text: record.text,
        });
    }

    /// All entries, oldest first.
    pub fn lines(&self) -> Vec<LogLine> {
        self.0.iter().cloned().collect()
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
}
