//! Extensions that are switched off, remembered outside of any repository.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

use crate::store::JsonStore;
use crate::store::StoreError;
use crate::store::folder_key;
use crate::store::now;

/// The name of the file in the home folder.
pub const FILE_NAME: &str = "switches.json";

/// An extension that is switched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// The extension's folder, without links.
    pub folder: PathBuf,
    /// Why.
    pub why: String,
    /// Since when, in RFC 3339.
    pub since: String,
}

/// What is remembered of one extension.
#[derive(Serialize, Deserialize)]
struct Off {
    why: String,
    since: String,
}

/// By the extension's folder.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Remembered {
    off: BTreeMap<String, Off>,
}

/// Which extensions are switched off. An extension is known by its folder: its name and scope may be
/// another's in the next workspace.
pub struct Switches(JsonStore<Remembered>);

impl Switches {
    /// Those in a home folder.
    pub fn of(home: &Path) -> Self {
        Self(JsonStore::new(home, FILE_NAME))
    }

    /// Why an extension is switched off, if it is. While the file cannot be read every extension is:
    /// one that was switched off must not run because of a damaged file.
    pub fn is_off(&self, folder: &Path) -> Option<String> {
        match self.0.read() {
            Ok(mut remembered) => {
                let off = remembered.off.remove(&folder_key(folder).ok()?)?;
                Some(off.why)
            }
            Err(error) => Some(error.to_string()),
        }
    }

    /// Switches an extension off. If it is off already, the new reason counts from now.
    pub fn switch_off(&self, folder: &Path, why: &str) -> Result<(), StoreError> {
        let key = self.key(folder)?;
        let off = Off { why: why.to_owned(), since: now() };
        self.0.change(|remembered| {
            remembered.off.insert(key, off);
        })
    }

    /// Switches an extension on again; whether it was off.
    pub fn switch_on(&self, folder: &Path) -> Result<bool, StoreError> {
        let key = self.key(folder)?;
        self.0.change(|remembered| remembered.off.remove(&key).is_some())
    }

    /// Every extension that is switched off, by folder; also those whose folder is gone.
    pub fn list(&self) -> Result<Vec<Switched>, StoreError> {
        let remembered = self.0.read()?.off.into_iter();
        Ok(remembered
            .map(|(folder, off)| Switched {
                folder: PathBuf::from(folder),
                why: off.why,
                since: off.since,
            })
            .collect())
    }

    fn key(&self, folder: &Path) -> Result<String, StoreError> {
        folder_key(folder).map_err(|source| StoreError::Read { path: folder.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extension(root: &Path, name: &str) -> PathBuf {
        let folder = root.join(name);
        std::fs::create_dir(&folder).unwrap();
        std::fs::canonicalize(folder).unwrap()
    }

    #[test]
    fn an_extension_is_off_until_it_is_switched_on() {
        let temp = tempfile::tempdir().unwrap();
        let (a, b) = (extension(temp.path(), "a"), extension(temp.path(), "b"));
        let home = temp.path().join("home");
        let switches = Switches::of(&home);
        assert_eq!(switches.is_off(&a), None);
        switches.switch_off(&a, "too noisy").unwrap();
        assert_eq!(Switches::of(&home).is_off(&a).as_deref(), Some("too noisy"));
        assert_eq!(switches.is_off(&b), None);
        assert!(switches.switch_on(&a).unwrap());
        assert!(!switches.switch_on(&a).unwrap());
        assert_eq!(switches.is_off(&a), None);
    }

    #[test]
    fn the_last_reason_is_listed_once() {
        let temp = tempfile::tempdir().unwrap();
        let a = extension(temp.path(), "a");
        let switches = Switches::of(temp.path());
        switches.switch_off(&a, "first").unwrap();
        switches.switch_off(&a, "second").unwrap();
        let list = switches.list().unwrap();
        assert_eq!(list.len(), 1);
        assert_eq!((&list[0].folder, list[0].why.as_str()), (&a, "second"));
        assert!(chrono::DateTime::parse_from_rfc3339(&list[0].since).is_ok());
    }

    #[test]
    fn an_extension_is_the_same_through_a_link_and_known_when_it_is_gone() {
        let temp = tempfile::tempdir().unwrap();
        let a = extension(temp.path(), "a");
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&a, &link).unwrap();
        let switches = Switches::of(temp.path());
        switches.switch_off(&link, "why").unwrap();
        assert!(switches.is_off(&a).is_some());
        std::fs::remove_dir(&a).unwrap();
        assert!(switches.is_off(&a).is_some());
        assert!(switches.switch_on(&a).unwrap());
    }

    #[test]
    fn a_damaged_file_switches_nothing_on() {
        let temp = tempfile::tempdir().unwrap();
        let a = extension(temp.path(), "a");
        let file = temp.path().join(FILE_NAME);
        std::fs::write(&file, "nonsense").unwrap();
        let switches = Switches::of(temp.path());
        let why = switches.is_off(&a).unwrap();
        assert!(why.contains("switches.json is damaged"), "{why}");
        assert!(switches.switch_on(&a).is_err());
        assert!(switches.switch_off(&a, "why").is_err());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "nonsense");
    }
}
