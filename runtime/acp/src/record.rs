//! What is remembered of a session with an agent, so that it can go on later.

use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use tenon_host::beneath::Beneath;
use tenon_host::layout;

/// The name of the file in the session's folder.
const FILE_NAME: &str = "agent.json";

/// The most bytes of the file. It has some hundred; a title can be long.
const MAX_BYTES: usize = 1024 * 1024;

/// A session with an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRecord {
    /// The session's id: the name of its folder.
    pub id: String,
    /// The agent, by name.
    pub agent: String,
    /// What the agent calls the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acp_session_id: Option<String>,
    /// Where it works.
    pub cwd: PathBuf,
    /// What it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// When it began; ISO 8601.
    pub created: String,
    /// When it was last worked on; ISO 8601.
    pub updated: String,
}

/// The folder of a session.
pub fn folder(home: &Path, id: &str) -> PathBuf {
    layout::session(home, id)
}

/// Now, as records tell the time.
pub fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Millis, true)
}

/// Every session with an agent, the newest first.
pub fn list(home: &Path) -> Vec<SessionRecord> {
    let Ok(folders) = std::fs::read_dir(layout::sessions(home)) else { return Vec::new() };
    let mut records: Vec<_> =
        folders.filter_map(|folder| read(home, folder.ok()?.file_name().to_str()?)).collect();
    records.sort_by(|a, b| b.updated.cmp(&a.updated));
    records
}

/// What is remembered of a session; none if nothing that can be read is.
pub fn read(home: &Path, id: &str) -> Option<SessionRecord> {
    // An id is the name of a folder, not a way out of it.
    if id.is_empty() || id.starts_with('.') || id.contains(['/', '\\', '\0']) {
        return None;
    }
    // Whoever can write there must not have us read elsewhere.
    let text = Beneath::open(&folder(home, id)).ok()?.read(Path::new(FILE_NAME), MAX_BYTES).ok()?;
    let record: SessionRecord = serde_json::from_str(&text).ok()?;
    (record.id == id).then_some(record)
}

/// Remembers a session. What was there is replaced as a whole.
pub fn write(home: &Path, record: &SessionRecord) -> std::io::Result<()> {
    let folder = folder(home, &record.id);
    std::fs::create_dir_all(&folder)?;
    let text = serde_json::to_vec_pretty(record)?;
    let written = Beneath::open(&folder)?.replace(Path::new(FILE_NAME), &text);
    written.map(drop).map_err(std::io::Error::other)
}

/// Forgets a session, with everything in its folder.
pub fn delete(home: &Path, id: &str) -> std::io::Result<()> {
    if id.is_empty() || id.starts_with('.') || id.contains(['/', '\\', '\0']) {
        let message = format!("{id:?} is not the id of a session");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, message));
    }
    std::fs::remove_dir_all(folder(home, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: &str, updated: &str) -> SessionRecord {
        SessionRecord {
            id: id.to_owned(),
            agent: "demo".to_owned(),
            acp_session_id: Some("native".to_owned()),
            cwd: PathBuf::from("/work"),
            title: None,
            created: updated.to_owned(),
            updated: updated.to_owned(),
        }
    }

    #[test]
    fn the_newest_comes_first_and_damage_is_passed_over() {
        let home = tempfile::tempdir().unwrap();
        write(home.path(), &record("a", "2026-01-01T00:00:00.000Z")).unwrap();
        write(home.path(), &record("b", "2026-01-02T00:00:00.000Z")).unwrap();
        std::fs::create_dir_all(folder(home.path(), "c")).unwrap();
        std::fs::write(folder(home.path(), "c").join(FILE_NAME), "{").unwrap();
        let ids: Vec<_> = list(home.path()).into_iter().map(|record| record.id).collect();
        assert_eq!(ids, ["b", "a"]);
        delete(home.path(), "b").unwrap();
        assert_eq!(read(home.path(), "b"), None);
    }

    #[test]
    fn a_link_in_the_place_of_the_record_is_neither_read_nor_written_through() {
        let home = tempfile::tempdir().unwrap();
        let other = home.path().join("other");
        let kept = record("a", "2026-01-01T00:00:00.000Z");
        write(home.path(), &kept).unwrap();
        let path = folder(home.path(), "a").join(FILE_NAME);
        std::fs::rename(&path, &other).unwrap();
        let before = std::fs::read(&other).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert_eq!(read(home.path(), "a"), None);
        write(home.path(), &record("a", "2026-01-02T00:00:00.000Z")).unwrap();
        assert_eq!(std::fs::read(&other).unwrap(), before);
        assert_ne!(read(home.path(), "a").unwrap(), kept);
    }

    #[test]
    fn an_id_leads_nowhere_else() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(read(home.path(), "../x"), None);
        assert!(delete(home.path(), "..").is_err());
        assert!(delete(home.path(), "").is_err());
    }
}
