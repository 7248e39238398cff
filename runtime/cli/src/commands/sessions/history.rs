//! What was said in a session, from its recorded events. They are read line by line: a session may be long.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::ErrorKind;
use std::path::Path;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::error::CliError;
use crate::output;

/// How many of the last messages are shown.
const LAST_MESSAGES: usize = 10;

/// How much is printed at once, in bytes.
const BATCH_BYTES: usize = 64 * 1024;

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Said {
    /// `user`, `assistant`, or who else sent a prompt.
    pub by: String,
    /// When.
    pub at: String,
    /// What.
    pub text: String,
}

/// A session in numbers, and what was said last.
#[derive(Debug, Default, Serialize)]
pub struct History {
    /// How many events are recorded.
    pub events: u64,
    /// How many prompts there were.
    pub prompts: u64,
    /// How many tool calls there were.
    pub tool_calls: u64,
    /// What was said last, the oldest first.
    pub messages: VecDeque<Said>,
}

impl History {
    /// Reads what was recorded; nothing if there is no file.
    pub fn of(file: &Path) -> Result<Self, CliError> {
        let mut history = Self::default();
        each_line(file, |line| {
            if let Ok(event) = serde_json::from_slice(line) {
                history.add(&event);
            }
            Ok(())
        })?;
        Ok(history)
    }

    fn add(&mut self, event: &Value) {
        self.events += 1;
        let data = &event["data"];
        let by = match event["type"].as_str() {
            Some("user.message") => {
                self.prompts += 1;
                data["source"].as_str().unwrap_or("user")
            }
            Some("assistant.message") => "assistant",
            Some("tool.execution_start") => {
                self.tool_calls += 1;
                return;
            }
            _ => return,
        };
        let text = data["content"].as_str().unwrap_or_default();
        if text.trim().is_empty() {
            return;
        }
        if self.messages.len() == LAST_MESSAGES {
            self.messages.pop_front();
        }
        self.messages.push_back(Said {
            by: by.to_owned(),
            at: event["timestamp"].as_str().unwrap_or_default().to_owned(),
            text: text.to_owned(),
        });
    }
}

/// Prints every event as it is recorded. A line that is none is left out.
pub fn print_events(file: &Path) -> Result<(), CliError> {
    let mut batch = Vec::new();
    let printed = each_line(file, |line| {
        if serde_json::from_slice::<IgnoredAny>(line).is_ok() {
            batch.extend_from_slice(line);
            batch.push(b'\n');
        }
        if batch.len() < BATCH_BYTES {
            return Ok(());
        }
        output::stream_bytes(&std::mem::take(&mut batch))
    });
    match printed {
        // Whoever has read enough may leave.
        Ok(Ended::NotRead) => Ok(()),
        Ok(Ended::Read) => match output::stream_bytes(&batch) {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
            _ => Ok(()),
        },
        Err(error) => Err(error),
    }
}

/// How far a file was read.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// To its end.
    Read,
    /// Until nobody wanted more.
    NotRead,
}

/// Reads a file line by line. Half a line at its end, which is still being written, is left out.
fn each_line(
    file: &Path,
    mut take: impl FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<Ended, CliError> {
    let unreadable = |error: std::io::Error| {
        CliError::new(format!("{} cannot be read: {error}", file.display()))
    };
    let mut reader = match File::open(file) {
        Ok(opened) => BufReader::new(opened),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Ended::Read),
        Err(error) => return Err(unreadable(error)),
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(unreadable)?;
        if line.pop() != Some(b'\n') {
            return Ok(Ended::Read);
        }
        match take(&line) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Ended::NotRead),
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: &str, data: Value) -> String {
        format!("{}\n", json!({ "type": kind, "timestamp": "t", "data": data }))
    }

    fn history(text: &str) -> History {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        std::fs::write(&file, text).unwrap();
        History::of(&file).unwrap()
    }

    #[test]
    fn messages_are_told_by_who_said_them() {
        let text = [
            event("user.message", json!({ "content": "hello" })),
            event("tool.execution_start", json!({ "toolName": "view" })),
            event("assistant.message", json!({ "content": "hi" })),
            event("assistant.message", json!({ "content": " \n" })),
            event("user.message", json!({ "content": "go on", "source": "system" })),
            "nonsense\n{\"type\":\"user.message\"".to_owned(),
        ];
        let history = history(&text.concat());
        assert_eq!((history.events, history.prompts, history.tool_calls), (5, 2, 1));
        let said: Vec<_> =
            history.messages.iter().map(|said| (said.by.as_str(), said.text.as_str())).collect();
        assert_eq!(said, [("user", "hello"), ("assistant", "hi"), ("system", "go on")]);
    }

    #[test]
    fn only_the_last_messages_are_kept() {
        let text: String = (0..LAST_MESSAGES + 5)
            .map(|number| event("user.message", json!({ "content": number.to_string() })))
            .collect();
        let history = history(&text);
        assert_eq!(history.messages.len(), LAST_MESSAGES);
        assert_eq!(history.messages[0].text, "5");
        assert_eq!(history.prompts as usize, LAST_MESSAGES + 5);
    }

    #[test]
    fn a_session_without_events_has_no_history() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::of(&folder.path().join("missing")).unwrap();
        assert_eq!(history.events, 0);
    }

    #[test]
    fn reading_stops_when_nobody_wants_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("events.jsonl");
        std::fs::write(&file, "1\n2\n3\n").unwrap();
        let mut seen = 0;
        let ended = each_line(&file, |_| {
            seen += 1;
            Err(ErrorKind::BrokenPipe.into())
        });
        assert_eq!((ended.unwrap(), seen), (Ended::NotRead, 1));
    }
}
