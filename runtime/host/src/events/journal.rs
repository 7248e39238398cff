//! The record of a session: `events.jsonl`, one event a line, each written before anybody sees it; only
//! details of others may be a moment late.

use std::collections::VecDeque;
use std::fs::File;
use std::fs::TryLockError;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tenon_protocol::json_values;

use super::Recorded;
use crate::beneath::Beneath;

/// The name of the file in a session's folder.
pub const FILE_NAME: &str = "events.jsonl";

/// The most events that are kept of a session that is not recorded; older ones go first.
const MAX_REMEMBERED_EVENTS: usize = 10_000;

/// The most memory that events take which are kept of such a session, in bytes: their texts, and the values that these have.
const MAX_REMEMBERED_BYTES: usize = 32 * 1024 * 1024;

/// What a value of JSON takes, in bytes: a little more than most do.
const VALUE_BYTES: usize = 100;

/// Details wait for the next event, up to so many bytes.
const MAX_WAITING_BYTES: usize = 64 * 1024;

/// A session's record could not be used.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be used: {source}")]
pub struct JournalError {
    /// The file.
    pub path: PathBuf,
    /// What the system said.
    pub source: std::io::Error,
}

/// Where events are recorded.
pub struct Journal(Place);

enum Place {
    Memory {
        events: VecDeque<Arc<Recorded>>,
        /// What they take together.
        bytes: usize,
    },
    File {
        path: PathBuf,
        file: Arc<File>,
        /// Bytes of whole lines.
        length: u64,
        last_id: Option<String>,
        /// Lines that are not written yet.
        waiting: Vec<u8>,
        /// The disk refused a line; said once, and tried again with the next.
        refused: bool,
    },
}

impl Journal {
    /// A journal that lives as long as the session.
    pub fn in_memory() -> Self {
        Self(Place::Memory { events: VecDeque::new(), bytes: 0 })
    }

    /// The journal of a session's folder. Half a line at its end, left by a crash, is taken away.
    pub fn open(folder: &Path) -> Result<Self, JournalError> {
        let path = folder.join(FILE_NAME);
        let open = || -> std::io::Result<Place> {
            std::fs::create_dir_all(folder)?;
            // Whoever can write there must not have the session write elsewhere.
            let beneath = Beneath::open(folder)?;
            let opened = beneath.append(Path::new(FILE_NAME));
            let mut file = opened.map_err(std::io::Error::other)?;
            // Two programs that record the same session would spoil each other's lines.
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                let message = "the session is open in another program";
                return Err(std::io::Error::new(std::io::ErrorKind::ResourceBusy, message));
            }
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
            if whole < text.len() {
                file.set_len(whole as u64)?;
            }
            let last_id = events_of(&text[..whole])
                .rev()
                .find_map(|event| Some(event["id"].as_str()?.to_owned()));
            Ok(Place::File {
                path: path.clone(),
                file: Arc::new(file),
                length: whole as u64,
                last_id,
                waiting: Vec::new(),
                refused: false,
            })
        };
        open().map(Self).map_err(|source| JournalError { path: path.clone(), source })
    }

    /// The id of the last event.
    pub fn last_id(&self) -> Option<String> {
        match &self.0 {
            Place::Memory { events, .. } => events.back().map(|event| event.event.id.clone()),
            Place::File { last_id, .. } => last_id.clone(),
        }
    }

    /// Adds an event. A detail may wait for the next event or flush.
    pub fn append(&mut self, event: &Arc<Recorded>, is_detail: bool) {
        let flush = match &mut self.0 {
            Place::Memory { events, bytes } => {
                *bytes += memory_of(event);
                events.push_back(event.clone());
                // The newest stays, however long it is: the next event names it as its parent.
                while events.len() > MAX_REMEMBERED_EVENTS
                    || (*bytes > MAX_REMEMBERED_BYTES && events.len() > 1)
                {
                    *bytes -= events.pop_front().map_or(0, |oldest| memory_of(&oldest));
                }
                false
            }
            Place::File { last_id, waiting, .. } => {
                waiting.extend_from_slice(event.text.as_bytes());
                waiting.push(b'\n');
                *last_id = Some(event.event.id.clone());
                !is_detail || waiting.len() > MAX_WAITING_BYTES
            }
        };
        if flush {
            self.flush();
        }
    }

    /// Writes what waits: whole lines in one write, so that a crash leaves whole lines, or half a line at
    /// the very end.
    pub fn flush(&mut self) {
        let Place::File { file, length, waiting, refused, .. } = &mut self.0 else { return };
        if waiting.is_empty() {
            return;
        }
        match (&**file).write_all(waiting) {
            Ok(()) => {
                *length += waiting.len() as u64;
                *refused = false;
            }
            Err(error) => {
                // Whatever was written of the lines would spoil the next.
                let _ = file.set_len(*length);
                if !std::mem::replace(refused, true) {
                    log_refusal(&error);
                }
            }
        }
        waiting.clear();
    }

    /// Whether lines wait to be written.
    pub fn is_waiting(&self) -> bool {
        matches!(&self.0, Place::File { waiting, .. } if !waiting.is_empty())
    }

    /// Reads without holding anything up.
    pub fn reader(&self) -> Reader {
        match &self.0 {
            Place::Memory { events, .. } => Reader::Memory(events.iter().cloned().collect()),
            Place::File { path, file, length, .. } => {
                Reader::File { path: path.clone(), file: file.clone(), length: *length }
            }
        }
    }

    /// The file, to be made safe.
    pub fn file(&self) -> Option<Arc<File>> {
        match &self.0 {
            Place::Memory { .. } => None,
            Place::File { file, .. } => Some(file.clone()),
        }
    }
}

/// What an event takes, in bytes.
fn memory_of(event: &Recorded) -> usize {
    event.text.len() + VALUE_BYTES * json_values::count(event.text.as_bytes())
}

#[expect(
    clippy::print_stderr,
    reason = "the record itself is what failed; there is no better place"
)]
fn log_refusal(error: &std::io::Error) {
    eprintln!("warning: the session's events cannot be recorded: {error}");
}

/// Reads the events that were recorded at some moment.
pub enum Reader {
    /// From memory.
    Memory(Vec<Arc<Recorded>>),
    /// From the file, up to a length.
    File {
        /// Where it is.
        path: PathBuf,
        /// The file, which need not be there any more.
        file: Arc<File>,
        /// Bytes that were whole lines then.
        length: u64,
    },
}

impl Reader {
    /// All events, oldest first.
    pub fn read(self) -> Result<Vec<Value>, JournalError> {
        match self {
            Self::Memory(events) => Ok(events
                .iter()
                .filter_map(|event| serde_json::to_value(&event.event).ok())
                .collect()),
            Self::File { path, file, length } => {
                let text = read_from_start(&file, length)
                    .map_err(|source| JournalError { path: path.clone(), source })?;
                Ok(events_of(&text).collect())
            }
        }
    }
}

/// Reads so many bytes, or up to the end, wherever others stand in the file.
fn read_from_start(file: &File, length: u64) -> std::io::Result<Vec<u8>> {
    let mut text = vec![0; usize::try_from(length).map_err(std::io::Error::other)?];
    let mut read = 0;
    while read < text.len() {
        match file.read_at(&mut text[read..], read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    text.truncate(read);
    Ok(text)
}

/// The events in a text; a line that is none is left out.
fn events_of(text: &[u8]) -> impl DoubleEndedIterator<Item = Value> + '_ {
    text.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Event;
    use super::*;

    fn event(id: &str) -> Arc<Recorded> {
        let event = Event {
            kind: "x".to_owned(),
            data: json!({ "text": "line\nbreak" }).into(),
            id: id.to_owned(),
            timestamp: String::new(),
            parent_id: None,
            ephemeral: false,
        };
        let text = serde_json::to_string(&event).unwrap();
        Arc::new(Recorded { event, text })
    }

    #[test]
    fn what_was_written_is_there_after_a_crash_in_the_middle_of_a_line() {
        let temp = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(temp.path()).unwrap();
        journal.append(&event("one"), false);
        journal.append(&event("two"), true);
        journal.flush();
        drop(journal);
        let path = temp.path().join(FILE_NAME);
        let whole = std::fs::read(&path).unwrap();
        let mut file = File::options().append(true).open(&path).unwrap();
        file.write_all(br#"{"type":"x","da"#).unwrap();
        let mut journal = Journal::open(temp.path()).unwrap();
        assert_eq!(journal.last_id().as_deref(), Some("two"));
        assert_eq!(std::fs::read(&path).unwrap(), whole);
        journal.append(&event("three"), false);
        let events = journal.reader().read().unwrap();
        let ids: Vec<_> = events.iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["one", "two", "three"]);
    }

    #[test]
    fn a_session_that_is_not_recorded_remembers_so_many_events() {
        let mut journal = Journal::in_memory();
        for number in 0..=MAX_REMEMBERED_EVENTS {
            journal.append(&event(&number.to_string()), false);
        }
        let events = journal.reader().read().unwrap();
        assert_eq!(events.len(), MAX_REMEMBERED_EVENTS);
        assert_eq!(events[0]["id"], "1");
    }

    #[test]
    fn a_session_that_is_not_recorded_remembers_so_many_bytes() {
        let mut journal = Journal::in_memory();
        let with_text = |id: &str, text: String| {
            let mut recorded = Arc::into_inner(event(id)).unwrap();
            recorded.text = text;
            Arc::new(recorded)
        };
        // Two fit, with a value each.
        let long = |id: &str| with_text(id, "x".repeat(MAX_REMEMBERED_BYTES / 2 - VALUE_BYTES));
        for id in ["one", "two", "three"] {
            journal.append(&long(id), false);
        }
        let ids = |journal: &Journal| -> Vec<String> {
            let events = journal.reader().read().unwrap();
            events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(ids(&journal), ["two", "three"]);
        journal.append(&event("four"), false);
        assert_eq!(ids(&journal), ["three", "four"]);
        // A short text of many values takes as much as a long one.
        let values = format!("[{}0]", "0,".repeat(MAX_REMEMBERED_BYTES / VALUE_BYTES));
        journal.append(&with_text("five", values), false);
        assert_eq!(ids(&journal), ["five"]);
    }

    #[test]
    fn a_session_is_recorded_by_one_program_at_a_time() {
        let temp = tempfile::tempdir().unwrap();
        let journal = Journal::open(temp.path()).unwrap();
        let error = Journal::open(temp.path()).err().unwrap();
        assert!(error.to_string().contains("open in another program"), "{error}");
        drop(journal);
        assert!(Journal::open(temp.path()).is_ok());
    }

    #[test]
    fn a_link_in_the_place_of_the_record_is_not_followed() {
        let temp = tempfile::tempdir().unwrap();
        let (folder, other) = (temp.path().join("session"), temp.path().join("other"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&other, "mine\n").unwrap();
        let path = folder.join(FILE_NAME);
        std::os::unix::fs::symlink(&other, &path).unwrap();
        let error = Journal::open(&folder).err().unwrap().to_string();
        assert!(error.contains("is a link"), "{error}");
        std::fs::remove_file(&path).unwrap();
        std::fs::hard_link(&other, &path).unwrap();
        let error = Journal::open(&folder).err().unwrap().to_string();
        assert!(error.contains("another name"), "{error}");
        std::fs::remove_file(&path).unwrap();
        let mut journal = Journal::open(&folder).unwrap();
        // What is put there later is neither written nor read.
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        journal.append(&event("one"), false);
        assert_eq!(journal.reader().read().unwrap()[0]["id"], "one");
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "mine\n");
    }

    #[test]
    fn a_line_that_is_no_event_is_left_out() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(FILE_NAME), "nonsense\n{\"id\":\"a\"}\n").unwrap();
        let journal = Journal::open(temp.path()).unwrap();
        assert_eq!(journal.reader().read().unwrap(), [json!({ "id": "a" })]);
    }
}
