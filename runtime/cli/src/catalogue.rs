//! The sessions that are recorded in the home folder, with an agent or without.

use std::collections::HashMap;
use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use chrono::DateTime;
use chrono::Utc;
use serde::Serialize;
use serde_json::Value;
use tenon_acp::record;
use tenon_acp::record::SessionRecord;
use tenon_host::events;

use crate::error::CliError;
use crate::sanitise::clean;

/// How much of a session's events is looked at to find out what it is about, in bytes. The first prompt comes
/// early, unless it is a book.
const HEAD_BYTES: u64 = 256 * 1024;

/// The shortest id that is shown.
const SHORT_ID: usize = 8;

/// How many sessions are named when several begin in the same way.
const MAX_NAMED: usize = 5;

/// A session that is recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Stored {
    /// The name of its folder.
    pub id: String,
    /// The agent; none for a session that nobody answered in.
    pub agent: Option<String>,
    /// What the agent calls it.
    pub agent_session: Option<String>,
    /// What it is about.
    pub title: Option<String>,
    /// Where it works, if that is known.
    pub cwd: Option<PathBuf>,
    /// When it began.
    pub created: Option<String>,
    /// When something was last recorded.
    pub updated: Option<String>,
}

impl Stored {
    /// When something was last recorded.
    pub fn updated_at(&self) -> Option<DateTime<Utc>> {
        let parsed = DateTime::parse_from_rfc3339(self.updated.as_deref()?).ok()?;
        Some(parsed.with_timezone(&Utc))
    }
}

/// The folder with a folder for every session.
fn root(home: &Path) -> PathBuf {
    tenon_host::layout::sessions(home)
}

/// The file with the events of a session.
pub fn events_file(home: &Path, id: &str) -> PathBuf {
    root(home).join(id).join(events::FILE_NAME)
}

/// Every session that something is recorded of, the newest first.
pub fn list(home: &Path) -> Vec<Stored> {
    let records = record::list(home).into_iter().map(|record| (record.id.clone(), record));
    let mut records: HashMap<_, _> = records.collect();
    let mut sessions: Vec<_> = ids(home)
        .into_iter()
        .filter_map(|id| {
            let record = records.remove(&id);
            stored(home, id, record)
        })
        .collect();
    sessions.sort_by(|a, b| (b.updated_at(), &a.id).cmp(&(a.updated_at(), &b.id)));
    sessions
}

/// The sessions that have a folder.
fn ids(home: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(root(home)) else { return Vec::new() };
    let names = entries.filter_map(|entry| {
        let entry = entry.ok()?;
        entry.path().is_dir().then_some(())?;
        entry.file_name().into_string().ok()
    });
    // A name that begins with a dot is nobody's id.
    names.filter(|name| !name.starts_with('.')).collect()
}

/// What there is to know of a session; none if nothing was ever recorded.
fn stored(home: &Path, id: String, record: Option<SessionRecord>) -> Option<Stored> {
    let file = events_file(home, &id);
    let head = match &record {
        Some(record) if record.title.is_some() => Head::default(),
        _ => File::open(&file).map(Head::read).unwrap_or_default(),
    };
    if let Some(record) = record {
        return Some(Stored {
            id,
            agent: Some(record.agent),
            agent_session: record.acp_session_id,
            title: record.title.or(head.prompt),
            cwd: Some(record.cwd),
            created: Some(record.created),
            updated: Some(record.updated),
        });
    }
    let written = std::fs::metadata(&file).ok().filter(|file| file.len() > 0)?;
    let updated = written.modified().ok().map(|time| DateTime::<Utc>::from(time).to_rfc3339());
    Some(Stored {
        id,
        agent: None,
        agent_session: None,
        title: head.prompt,
        cwd: head.cwd,
        created: head.created,
        updated,
    })
}

/// What the first events of a session say about it.
#[derive(Debug, Default, PartialEq, Eq)]
struct Head {
    created: Option<String>,
    cwd: Option<PathBuf>,
    /// The first prompt.
    prompt: Option<String>,
}

impl Head {
    fn read(events: impl Read) -> Self {
        let mut head = Self::default();
        let lines = BufReader::new(events.take(HEAD_BYTES)).split(b'\n');
        for line in lines.map_while(Result::ok) {
            let Ok(event) = serde_json::from_slice::<Value>(&line) else { continue };
            let data = &event["data"];
            let text = |value: &Value| value.as_str().map(str::to_owned);
            head.created = head.created.or_else(|| text(&event["timestamp"]));
            match event["type"].as_str() {
                Some("session.start" | "session.resume") => {
                    let cwd = data["context"]["cwd"].as_str().map(PathBuf::from);
                    head.cwd = head.cwd.or(cwd);
                }
                Some("user.message") => {
                    head.prompt = text(&data["content"]);
                    break;
                }
                _ => {}
            }
        }
        head
    }
}

/// The session with an id, or the only one whose id begins like that.
pub fn find(home: &Path, wanted: &str) -> Result<Stored, CliError> {
    let mut sessions = list(home);
    let ids: Vec<&str> = sessions.iter().map(|session| session.id.as_str()).collect();
    let place = pick(&ids, wanted).map_err(|matching| {
        if matching.is_empty() {
            let message = format!("there is no session \"{wanted}\"");
            return CliError::new(message).hint("tenon sessions list --all shows those there are");
        }
        let named: Vec<_> = matching.iter().take(MAX_NAMED).map(|&place| ids[place]).collect();
        let more = if matching.len() > MAX_NAMED { ", ..." } else { "" };
        CliError::new(format!("{} sessions begin with \"{wanted}\"", matching.len()))
            .hint(format!("say more of the id: {}{more}", named.join(", ")))
    })?;
    Ok(sessions.swap_remove(place))
}

/// Which of the ids is meant; all that could be meant if it is not exactly one.
fn pick(ids: &[&str], wanted: &str) -> Result<usize, Vec<usize>> {
    if let Some(place) = ids.iter().position(|id| *id == wanted) {
        return Ok(place);
    }
    let begins = |place: &usize| !wanted.is_empty() && ids[*place].starts_with(wanted);
    let matching: Vec<_> = (0..ids.len()).filter(begins).collect();
    match matching.as_slice() {
        [only] => Ok(*only),
        _ => Err(matching),
    }
}

/// How many characters of the ids tell them apart, and are enough to name one.
pub fn short_length<'a>(ids: impl IntoIterator<Item = &'a str>) -> usize {
    let mut sorted: Vec<_> = ids.into_iter().collect();
    sorted.sort_unstable();
    let common = |pair: &[&str]| {
        let same = pair[0].chars().zip(pair[1].chars()).take_while(|(a, b)| a == b);
        same.count() + 1
    };
    sorted.windows(2).map(common).max().unwrap_or(0).max(SHORT_ID)
}

/// When something was, seen from now.
pub fn age(then: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let passed = now.signed_duration_since(then);
    match (passed.num_minutes(), passed.num_hours(), passed.num_days()) {
        (..1, _, _) => "just now".to_owned(),
        (minutes, 0, _) => format!("{minutes} min ago"),
        (_, hours, 0) => format!("{hours} h ago"),
        (_, _, 1) => "yesterday".to_owned(),
        (_, _, days @ ..30) => format!("{days} days ago"),
        _ => then.format("%Y-%m-%d").to_string(),
    }
}

/// A text of somebody else as one line, so that it cannot command the terminal, and no longer than that.
pub fn one_line(text: &str, length: usize) -> String {
    let line = clean(text).split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= length {
        return line;
    }
    line.chars().take(length.saturating_sub(3)).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(home: &Path, id: &str, text: &str) {
        let file = events_file(home, id);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }

    fn remember(home: &Path, id: &str, updated: &str) {
        let record = SessionRecord {
            id: id.to_owned(),
            agent: "demo".to_owned(),
            acp_session_id: None,
            cwd: PathBuf::from("/work"),
            title: Some("a title".to_owned()),
            created: updated.to_owned(),
            updated: updated.to_owned(),
        };
        record::write(home, &record).unwrap();
    }

    const START: &str = r#"{"type":"session.start","timestamp":"2026-01-01T00:00:00.000Z","data":{"context":{"cwd":"/repo"}}}
nonsense
{"type":"user.message","timestamp":"2026-01-01T00:00:01.000Z","data":{"content":"Fix it"}}
"#;

    #[test]
    fn sessions_with_and_without_an_agent_are_listed_the_newest_first() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        remember(home, "old", "2020-01-01T00:00:00.000Z");
        remember(home, "future", "2999-01-01T00:00:00.000Z");
        events(home, "other", START);
        events(home, "empty", "");
        let sessions = list(home);
        let ids: Vec<_> = sessions.iter().map(|session| session.id.as_str()).collect();
        assert_eq!(ids, ["future", "other", "old"]);
        assert_eq!(sessions[1].agent, None);
        assert_eq!(sessions[1].title.as_deref(), Some("Fix it"));
        assert_eq!(sessions[1].cwd.as_deref(), Some(Path::new("/repo")));
    }

    #[test]
    fn the_first_prompt_and_the_folder_are_found_and_damage_is_passed_over() {
        let head = Head::read(START.as_bytes());
        assert_eq!(head.created.as_deref(), Some("2026-01-01T00:00:00.000Z"));
        assert_eq!(head.prompt.as_deref(), Some("Fix it"));
        assert_eq!(Head::read(&b"{\"type\":\"user.mess"[..]), Head::default());
    }

    #[test]
    fn a_session_is_named_by_its_id_or_how_it_begins() {
        let ids = ["abc", "abd", "ab", "x"];
        assert_eq!(pick(&ids, "ab"), Ok(2));
        assert_eq!(pick(&ids, "abd"), Ok(1));
        assert_eq!(pick(&ids, "x"), Ok(3));
        assert_eq!(pick(&ids, "a"), Err(vec![0, 1, 2]));
        assert_eq!(pick(&ids, "z"), Err(vec![]));
        assert_eq!(pick(&["only"], ""), Err(vec![]));
    }

    #[test]
    fn an_unknown_session_is_an_error_that_says_where_to_look() {
        let home = tempfile::tempdir().unwrap();
        let error = find(home.path(), "../x").unwrap_err();
        assert!(error.message().contains("there is no session \"../x\""), "{error:?}");
    }

    #[test]
    fn short_ids_are_as_long_as_needed_to_tell_them_apart() {
        assert_eq!(short_length(["0123456789", "1123456789"]), 8);
        assert_eq!(short_length(["0123456789a", "0123456789b"]), 11);
        assert_eq!(short_length([]), 8);
    }

    #[test]
    fn ages_are_short() {
        let now: DateTime<Utc> = "2026-03-10T12:00:00Z".parse().unwrap();
        let ago = |text: &str| age(text.parse().unwrap(), now);
        assert_eq!(ago("2026-03-10T11:59:30Z"), "just now");
        assert_eq!(ago("2026-03-10T12:10:00Z"), "just now");
        assert_eq!(ago("2026-03-10T11:15:00Z"), "45 min ago");
        assert_eq!(ago("2026-03-10T09:00:00Z"), "3 h ago");
        assert_eq!(ago("2026-03-09T09:00:00Z"), "yesterday");
        assert_eq!(ago("2026-03-01T12:00:00Z"), "9 days ago");
        assert_eq!(ago("2025-12-24T12:00:00Z"), "2025-12-24");
    }

    #[test]
    fn a_title_is_one_line_that_cannot_command_the_terminal() {
        assert_eq!(one_line("a\n\tb\x1b[31mc\u{202e}d", 40), "a bcd");
        assert_eq!(one_line("0123456789", 8), "01234...");
        assert_eq!(one_line("01234567", 8), "01234567");
    }
}
