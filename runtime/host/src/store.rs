//! A small JSON file in the home folder that several programs may change at once.

use std::fs::DirBuilder;
use std::fs::File;
use std::io::ErrorKind;
use std::io::Write;
use std::marker::PhantomData;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What is remembered about the person's decisions is nobody else's to read or change.
const FILE_MODE: u32 = 0o600;

/// The same for a folder that is made for such files.
const FOLDER_MODE: u32 = 0o700;

/// What was remembered could not be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file is there but cannot be read.
    #[error("{path} cannot be read: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file cannot be replaced.
    #[error("{path} cannot be written: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file holds something else. It is left as it is.
    #[error("{path} is damaged: {source}; correct it, or move it away to start with an empty one")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
}

/// One value in one file. A file that is missing is the default value.
pub struct JsonStore<T> {
    path: PathBuf,
    value: PhantomData<fn() -> T>,
}

impl<T> JsonStore<T> {
    /// The file of this name in a home folder. Nothing is read or made yet.
    pub fn new(home: &Path, name: &str) -> Self {
        Self { path: home.join(name), value: PhantomData }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl<T: Default + Serialize + DeserializeOwned> JsonStore<T> {
    /// What is remembered now.
    pub fn read(&self) -> Result<T, StoreError> {
        self.parse(&self.text()?)
    }

    /// Changes what is remembered. Whoever else changes it at the same moment comes before or after, so
    /// `change` must be quick. It is not called if the file cannot be read or is damaged.
    pub fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, StoreError> {
        let failed = |source| StoreError::Write { path: self.path.clone(), source };
        // Let go of at the end of the function, when the file closes.
        let _lock = self.lock().map_err(failed)?;
        let before = self.text()?;
        let mut value = self.parse(&before)?;
        let result = change(&mut value);
        let mut after = serde_json::to_vec_pretty(&value).map_err(|error| failed(error.into()))?;
        after.push(b'\n');
        if before.as_ref() != Some(&after) {
            replace(&self.path, &after).map_err(failed)?;
        }
        Ok(result)
    }

    /// The text of the file; `None` if there is no file.
    fn text(&self) -> Result<Option<Vec<u8>>, StoreError> {
        match std::fs::read(&self.path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Read { path: self.path.clone(), source }),
        }
    }

    fn parse(&self, text: &Option<Vec<u8>>) -> Result<T, StoreError> {
        let Some(text) = text else { return Ok(T::default()) };
        serde_json::from_slice(text)
            .map_err(|source| StoreError::Corrupt { path: self.path.clone(), source })
    }

    /// The lock is a file of its own: the other one is replaced, and a lock on it would go with it.
    fn lock(&self) -> std::io::Result<File> {
        if let Some(folder) = self.path.parent() {
            make_private_folder(folder)?;
        }
        let mut options = File::options();
        options.create(true).write(true).truncate(false).mode(FILE_MODE);
        let file = options.open(self.path.with_extension("lock"))?;
        loop {
            match file.lock() {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                locked => return locked.map(|()| file),
            }
        }
    }
}

/// A crash leaves the old file or the new one, whole.
pub(crate) fn replace(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.{}.new", crate::ids::unique()));
    let write = || -> std::io::Result<()> {
        let mut file =
            File::options().create_new(true).write(true).mode(FILE_MODE).open(&beside)?;
        file.write_all(content)?;
        // Else the new name may reach the disk before the content does.
        file.sync_all()?;
        std::fs::rename(&beside, path)
    };
    write().inspect_err(|_| {
        // Half a file is of no use; that it cannot be removed either changes nothing.
        let _ = std::fs::remove_file(&beside);
    })?;
    // Not every file system can do this for a folder; the file is whole in any case.
    if let Some(Ok(folder)) = path.parent().map(File::open) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Makes a folder for this user alone. One that is there stays as it is.
pub(crate) fn make_private_folder(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)
}

/// The name under which a folder is remembered: its path without links, or just its absolute path if it
/// is not there. A path that is not UTF-8 has no such name; to write it another way could make two
/// folders one.
pub(crate) fn folder_key(folder: &Path) -> std::io::Result<String> {
    let path = match std::fs::canonicalize(folder) {
        Ok(path) => path,
        Err(_) => std::path::absolute(folder)?,
    };
    let not_utf8 =
        |_| std::io::Error::new(ErrorKind::InvalidFilename, "the name of the folder is not UTF-8");
    path.into_os_string().into_string().map_err(not_utf8)
}

/// The time, as it is remembered.
pub(crate) fn now() -> String {
    chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    type Numbers = JsonStore<BTreeSet<u32>>;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_missing_file_is_the_default_and_reading_makes_none() {
        let temp = tempfile::tempdir().unwrap();
        let store = Numbers::new(temp.path(), "numbers.json");
        assert!(store.read().unwrap().is_empty());
        assert!(entries(temp.path()).is_empty());
    }

    #[test]
    fn a_change_is_there_for_the_next_reader_and_only_for_this_user() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("new/home");
        let store = Numbers::new(&home, "numbers.json");
        assert!(store.change(|numbers| numbers.insert(7)).unwrap());
        assert!(!store.change(|numbers| numbers.insert(7)).unwrap());
        assert_eq!(Numbers::new(&home, "numbers.json").read().unwrap(), BTreeSet::from([7]));
        let mode = std::fs::metadata(store.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, FILE_MODE);
        assert_eq!(entries(&home), ["numbers.json", "numbers.lock"]);
    }

    #[test]
    fn changes_at_the_same_moment_are_all_kept() {
        let temp = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for start in 0..8 {
                let home = temp.path();
                scope.spawn(move || {
                    let store = Numbers::new(home, "numbers.json");
                    for number in 0..10 {
                        store.change(|numbers| numbers.insert(start * 10 + number)).unwrap();
                    }
                });
            }
        });
        let store = Numbers::new(temp.path(), "numbers.json");
        assert_eq!(store.read().unwrap(), (0..80).collect());
    }

    #[test]
    fn a_damaged_file_is_an_error_and_stays_as_it_is() {
        let temp = tempfile::tempdir().unwrap();
        for text in ["", "[1, 2", "{}", "[1] [2]"] {
            std::fs::write(temp.path().join("numbers.json"), text).unwrap();
            let store = Numbers::new(temp.path(), "numbers.json");
            let error = store.read().err().unwrap().to_string();
            assert!(error.contains("numbers.json is damaged"), "{error}");
            assert!(error.contains("move it away"), "{error}");
            assert!(matches!(
                store.change(|numbers| numbers.insert(1)),
                Err(StoreError::Corrupt { .. })
            ));
            assert_eq!(std::fs::read_to_string(store.path()).unwrap(), text);
        }
    }

    #[test]
    fn what_cannot_be_read_or_written_names_the_file() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("numbers.json")).unwrap();
        let store = Numbers::new(temp.path(), "numbers.json");
        assert!(matches!(store.read(), Err(StoreError::Read { .. })));
        let file = temp.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = Numbers::new(&file, "numbers.json").change(|_| ()).err().unwrap();
        assert!(matches!(error, StoreError::Write { .. }), "{error}");
        assert!(error.to_string().contains("file/numbers.json cannot be written"), "{error}");
    }

    #[test]
    fn a_folder_has_one_name_however_it_is_reached() {
        let temp = tempfile::tempdir().unwrap();
        let real = temp.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = temp.path().join("link");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert_eq!(folder_key(&link).unwrap(), folder_key(&real).unwrap());
        assert_eq!(folder_key(Path::new("/no/such/folder")).unwrap(), "/no/such/folder");
    }
}
