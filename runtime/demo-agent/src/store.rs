//! The demo agent's conversations, one JSON file each, so that a session can be loaded by another process.

use std::fs::DirBuilder;
use std::fs::File;
use std::io;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

/// Conversations are nobody else's to read.
const FILE_MODE: u32 = 0o600;

/// The same for their folder.
const FOLDER_MODE: u32 = 0o700;

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Speaker {
    /// The person.
    User,
    /// The agent.
    Agent,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spoken {
    /// By whom.
    pub(super) by: Speaker,
    /// What.
    pub(super) text: String,
}

/// A conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stored {
    /// The session's id.
    pub(super) id: String,
    /// Where it works.
    pub(super) cwd: PathBuf,
    /// What it is about.
    pub(super) title: Option<String>,
    /// When something last happened in it.
    pub(super) updated: String,
    /// Its mode.
    pub(super) mode: String,
    /// Its model.
    pub(super) model: String,
    /// How often it was opened, the first time included.
    pub(super) lives: u64,
    /// What was said.
    pub(super) messages: Vec<Spoken>,
}

/// The folder they are in.
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    /// In this folder, which need not exist yet.
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// The conversation of this id, if there is one that can be read.
    pub(super) fn read(&self, id: &str) -> Option<Stored> {
        let text = std::fs::read(self.path(id)?).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Every conversation, the newest first.
    pub(super) fn list(&self) -> Vec<Stored> {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return Vec::new() };
        let mut all: Vec<Stored> = entries
            .flatten()
            .filter_map(|entry| {
                entry.file_name().to_str()?.strip_suffix(".json").map(str::to_owned)
            })
            .filter_map(|id| self.read(&id))
            .collect();
        all.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| a.id.cmp(&b.id)));
        all
    }

    /// Keeps a conversation. Whoever reads it at the same moment gets it as it was before or as it is now.
    pub(super) fn write(&self, stored: &Stored) -> io::Result<()> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "not an id of a session");
        let path = self.path(&stored.id).ok_or_else(invalid)?;
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(&self.folder)?;
        let draft = path.with_extension("draft");
        let mut file =
            File::options().create(true).truncate(true).write(true).mode(FILE_MODE).open(&draft)?;
        file.write_all(&serde_json::to_vec_pretty(stored)?)?;
        drop(file);
        std::fs::rename(&draft, &path)
    }

    /// The file of an id; `None` for what is no id of ours and could lead out of the folder.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (!id.is_empty() && id.chars().all(fine)).then(|| self.folder.join(format!("{id}.json")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(id: &str, updated: &str) -> Stored {
        Stored {
            id: id.to_owned(),
            cwd: "/work".into(),
            title: Some("Title".to_owned()),
            updated: updated.to_owned(),
            mode: "default".to_owned(),
            model: "demo-small".to_owned(),
            lives: 1,
            messages: vec![Spoken { by: Speaker::User, text: "hello\nthere".to_owned() }],
        }
    }

    #[test]
    fn what_was_written_is_read_and_listed_the_newest_first() {
        let temp = tempfile::tempdir().unwrap();
        let store = Store::new(temp.path().join("deep/down"));
        assert!(store.list().is_empty());
        let old = conversation("demo-old", "2026-01-01T00:00:00Z");
        let new = conversation("demo-new", "2026-01-02T00:00:00Z");
        store.write(&old).unwrap();
        store.write(&new).unwrap();
        assert_eq!(store.read("demo-old"), Some(old.clone()));
        assert_eq!(store.list(), [new, old]);
    }

    #[test]
    fn an_id_does_not_lead_out_of_the_folder() {
        let temp = tempfile::tempdir().unwrap();
        let outside = Store::new(temp.path().to_owned());
        outside.write(&conversation("secret", "x")).unwrap();
        let store = Store::new(temp.path().join("inside"));
        assert_eq!(store.read("../secret"), None);
        assert!(store.write(&conversation("../secret", "y")).is_err());
        assert_eq!(store.read(""), None);
    }

    #[test]
    fn a_damaged_file_is_no_conversation() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join("demo-x.json"), "{").unwrap();
        let store = Store::new(temp.path().to_owned());
        assert_eq!(store.read("demo-x"), None);
        assert!(store.list().is_empty());
    }
}
