//! The last lines that a process wrote to its standard error, for the report of its death.

use std::collections::VecDeque;

/// How many lines are kept.
const MAX_LINES: usize = 8;

/// The longest line, in characters.
const MAX_LINE: usize = 500;

/// The last lines that contain a letter or a digit and are not a bare address.
#[derive(Debug, Default)]
pub struct LastLines(VecDeque<String>);

impl LastLines {
    pub fn push(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let text: String = text.trim().chars().take(MAX_LINE).collect();
        // The engine prints a backtrace of bare addresses after its error message.
        let is_address = text.split_once(" [0x").is_some_and(|(before, _)| !before.contains(' '));
        if is_address || !text.chars().any(char::is_alphanumeric) {
            return;
        }
        if self.0.len() == MAX_LINES {
            self.0.pop_front();
        }
        self.0.push_back(text);
    }

    /// Adds the lines to a sentence about how the process ended.
    pub fn explain(&self, how: String) -> String {
        if self.0.is_empty() {
            return how;
        }
        let lines: Vec<&str> = self.0.iter().map(String::as_str).collect();
        format!("{how}; its last words: {}", lines.join(" | "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_that_say_something_are_kept() {
        let mut lines = LastLines::default();
        for number in 0..=MAX_LINES {
            lines.push(format!(" line {number} \n").as_bytes());
            lines.push(b"-----");
            lines.push(b"==== [0x55d0c0ffee00]");
        }
        let kept: Vec<String> = (1..=MAX_LINES).map(|number| format!("line {number}")).collect();
        let expected = format!("it ended; its last words: {}", kept.join(" | "));
        assert_eq!(lines.explain("it ended".to_owned()), expected);
    }

    #[test]
    fn a_sentence_with_an_address_is_kept() {
        let mut lines = LastLines::default();
        lines.push(b"fault at [0x10] in extension");
        assert_eq!(
            lines.explain("it ended".to_owned()),
            "it ended; its last words: fault at [0x10] in extension"
        );
    }

    #[test]
    fn a_long_line_is_cut() {
        let mut lines = LastLines::default();
        lines.push("ä".repeat(MAX_LINE + 1).as_bytes());
        let expected = format!("it ended; its last words: {}", "ä".repeat(MAX_LINE));
        assert_eq!(lines.explain("it ended".to_owned()), expected);
    }

    #[test]
    fn a_process_that_wrote_nothing_adds_nothing() {
        assert_eq!(LastLines::default().explain("it ended".to_owned()), "it ended");
    }
}
