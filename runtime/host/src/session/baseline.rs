//! What extensions consisted of before one that may do less was started, kept on disk. Whatever that one does later, to the
//! session as well, a later session compares with it.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;

use crate::config::ExtensionConfig;
use crate::discovery::Scope;
use crate::extensions::Key;
use crate::store;
use crate::store::StoreError;

/// The name of the folder in Tenon's home. Each session that needs one has a file in it.
const FOLDER_NAME: &str = "baselines";

/// How the names of these files end, and those of the files that are locked as long as the session lives.
const RECORD: &str = "json";
const LIVE: &str = "live";

/// The locked file is nobody else's.
const LIVE_MODE: u32 = 0o600;

/// What an extension consists of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// See [`crate::trust::State`].
    pub folder: String,
    /// By path, the hash of what is in the files that it imports from elsewhere.
    pub outside: BTreeMap<PathBuf, String>,
}

/// The extensions of some places as nobody who may do less has touched them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The places. An extension in one of them that is not listed below was not there.
    pub roots: Vec<(Scope, PathBuf)>,
    /// Which restricted extensions ran, each with its configuration.
    pub restricted: Vec<(Key, ExtensionConfig)>,
    /// By folder, what extensions consisted of.
    pub folders: BTreeMap<PathBuf, Content>,
}

impl Baseline {
    /// Whether an extension lies in one of the places.
    pub fn covers(&self, folder: &Path) -> bool {
        let Some(parent) = folder.parent() else { return false };
        let real = std::fs::canonicalize(parent).ok();
        self.roots.iter().any(|(_, root)| {
            root == parent || real.is_some() && std::fs::canonicalize(root).ok() == real
        })
    }

    /// What an extension consisted of, if it was there.
    pub fn content(&self, folder: &Path) -> Option<&Content> {
        if let Some(content) = self.folders.get(folder) {
            return Some(content);
        }
        let real = std::fs::canonicalize(folder).ok()?;
        let is_it = |other: &&PathBuf| std::fs::canonicalize(other).is_ok_and(|it| it == real);
        // The workspace may have been reached by another way.
        let is_alias = |other: &&PathBuf| other.file_name() == folder.file_name() && is_it(other);
        self.folders.get(self.folders.keys().find(is_alias)?)
    }

    /// Leaves out what cannot be written: paths that are not UTF-8. Nothing in them runs.
    fn writable(mut self) -> Self {
        self.roots.retain(|(_, root)| root.to_str().is_some());
        self.restricted.retain(|((_, _, folder), _)| folder.to_str().is_some());
        self.folders.retain(|folder, _| folder.to_str().is_some());
        for content in self.folders.values_mut() {
            content.outside.retain(|file, _| file.to_str().is_some());
        }
        self
    }
}

/// The baseline of one session on disk, and what it knows of those of others.
#[derive(Default)]
pub struct Baselines {
    own: Mutex<Own>,
    /// Those of others that were read, each with what told its file apart then.
    read: Mutex<BTreeMap<PathBuf, (Stamp, Arc<Baseline>)>>,
}

/// Files are replaced and never rewritten, so another content is another file.
type Stamp = (u64, i64, i64);

#[derive(Default)]
struct Own {
    /// The record, and the file whose lock tells that its session lives.
    file: Option<(PathBuf, File)>,
    last: Option<Baseline>,
    is_over: bool,
}

impl Baselines {
    /// Records the baseline of this session. It is taken when it is its turn, so that of two who record at once the later
    /// has what both know; therefore the lock, which guards nothing else, is held while the file is written.
    pub fn record(&self, home: &Path, take: impl FnOnce() -> Baseline) -> Result<(), StoreError> {
        let mut own = lock(&self.own);
        let baseline = take().writable();
        if own.is_over || own.last.as_ref() == Some(&baseline) {
            return Ok(());
        }
        if own.file.is_none() {
            own.file = Some(begin(&home.join(FOLDER_NAME))?);
        }
        let Some((path, _)) = &own.file else { return Ok(()) };
        let failed = |source| StoreError::Write { path: path.clone(), source };
        let text = serde_json::to_vec(&baseline).map_err(|error| failed(error.into()))?;
        store::replace(path, &text).map_err(failed)?;
        own.last = Some(baseline);
        Ok(())
    }

    /// The session has ended in order: everything was compared, and what differs is held.
    pub fn end(&self) {
        let mut own = lock(&self.own);
        own.is_over = true;
        if let Some((path, live)) = own.file.take() {
            remove(&path, live);
        }
    }

    /// The baselines of other sessions, that live or did not end in order. If one cannot be read, nobody knows what it
    /// would say.
    pub fn of_others(&self, home: &Path) -> Result<Vec<Arc<Baseline>>, StoreError> {
        let own = lock(&self.own).file.as_ref().map(|(path, _)| path.clone());
        let mut found = Vec::new();
        for path in records(&home.join(FOLDER_NAME))? {
            if Some(&path) != own.as_ref()
                && let Some(baseline) = self.read(&path)?
            {
                found.push(baseline);
            }
        }
        Ok(found)
    }

    /// `None` if its session has ended meanwhile.
    fn read(&self, path: &Path) -> Result<Option<Arc<Baseline>>, StoreError> {
        let failed = |source: std::io::Error| match source.kind() {
            ErrorKind::NotFound => Ok(None),
            _ => Err(StoreError::Read { path: path.to_owned(), source }),
        };
        let stamp = match std::fs::metadata(path) {
            Ok(file) => (file.ino(), file.ctime(), file.ctime_nsec()),
            Err(error) => return failed(error),
        };
        if let Some((_, known)) = lock(&self.read).get(path).filter(|(then, _)| *then == stamp) {
            return Ok(Some(known.clone()));
        }
        let text = match std::fs::read(path) {
            Ok(text) => text,
            Err(error) => return failed(error),
        };
        let baseline: Baseline = serde_json::from_slice(&text)
            .map_err(|source| StoreError::Corrupt { path: path.to_owned(), source })?;
        let baseline = Arc::new(baseline);
        lock(&self.read).insert(path.to_owned(), (stamp, baseline.clone()));
        Ok(Some(baseline))
    }
}

/// A baseline whose session did not end in order. As long as this is there, nobody else takes it.
pub struct Abandoned {
    pub baseline: Baseline,
    path: PathBuf,
    live: File,
}

impl Abandoned {
    /// Those in a home. One that cannot be read stays, and keeps extensions from running.
    pub fn all(home: &Path) -> Vec<Self> {
        let paths = records(&home.join(FOLDER_NAME)).unwrap_or_default();
        paths.into_iter().filter_map(Self::take).collect()
    }

    fn take(path: PathBuf) -> Option<Self> {
        let live = open_live(&path).ok()?;
        live.try_lock().ok()?;
        // Read after it was locked: its session may have ended in order just now.
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => {
                if error.kind() == ErrorKind::NotFound {
                    let _ = std::fs::remove_file(path.with_extension(LIVE));
                }
                return None;
            }
        };
        let baseline = serde_json::from_slice(&text).ok()?;
        Some(Self { baseline, path, live })
    }

    /// Everything in it was compared, and what differs is held.
    pub fn settle(self) {
        remove(&self.path, self.live);
    }
}

fn begin(folder: &Path) -> Result<(PathBuf, File), StoreError> {
    let path = folder.join(format!("{}.{RECORD}", crate::ids::unique()));
    let failed = |source| StoreError::Write { path: path.clone(), source };
    store::make_private_folder(folder).map_err(failed)?;
    let live = open_live(&path).map_err(failed)?;
    // Locked before there is a record: whoever finds the record finds the session alive.
    live.lock().map_err(failed)?;
    Ok((path, live))
}

fn open_live(record: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.create(true).write(true).truncate(false).mode(LIVE_MODE);
    options.open(record.with_extension(LIVE))
}

/// The record goes first: without it, the other file says nothing.
fn remove(record: &Path, live: File) {
    if std::fs::remove_file(record).is_ok() {
        let _ = std::fs::remove_file(record.with_extension(LIVE));
    }
    drop(live);
}

fn records(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let failed = |source| StoreError::Read { path: folder.to_owned(), source };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(failed)?.path();
        let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        if !is_hidden && path.extension().is_some_and(|end| end == RECORD) {
            paths.push(path);
        }
    }
    Ok(paths)
}

fn lock<T>(mutex: &Mutex<T>) -> parking_lot::MutexGuard<'_, T> {
    // Every statement leaves what is inside whole, also one that panics.
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline(folder: &str) -> Baseline {
        let content = Content { folder: "hash".to_owned(), outside: BTreeMap::new() };
        Baseline {
            roots: vec![(Scope::User, PathBuf::from("/x"))],
            restricted: vec![(
                (Scope::User, "m".to_owned(), PathBuf::from("/x/m")),
                toml::from_str("profile = \"none\"\nheap-mb = 64").unwrap(),
            )],
            folders: [(PathBuf::from(folder), content)].into(),
        }
    }

    #[test]
    fn others_see_it_until_it_ends_and_nobody_takes_it_while_it_lives() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (Baselines::default(), Baselines::default());
        assert!(other.of_others(home.path()).unwrap().is_empty());
        one.record(home.path(), || baseline("/x/a")).unwrap();
        assert!(one.of_others(home.path()).unwrap().is_empty());
        assert_eq!(*other.of_others(home.path()).unwrap()[0], baseline("/x/a"));
        one.record(home.path(), || baseline("/x/b")).unwrap();
        assert_eq!(*other.of_others(home.path()).unwrap()[0], baseline("/x/b"));
        assert!(Abandoned::all(home.path()).is_empty());
        one.end();
        assert!(other.of_others(home.path()).unwrap().is_empty());
        // What comes late, comes after the end.
        one.record(home.path(), || baseline("/x/c")).unwrap();
        assert!(other.of_others(home.path()).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(home.path().join(FOLDER_NAME)).unwrap().count(), 0);
    }

    #[test]
    fn one_that_did_not_end_stays_until_it_is_settled() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (Baselines::default(), Baselines::default());
        one.record(home.path(), || baseline("/x/a")).unwrap();
        drop(one);
        assert_eq!(other.of_others(home.path()).unwrap().len(), 1);
        let mut abandoned = Abandoned::all(home.path());
        assert_eq!(abandoned.len(), 1);
        assert!(Abandoned::all(home.path()).is_empty());
        drop(abandoned.pop());
        let again = Abandoned::all(home.path()).pop().unwrap();
        assert_eq!(again.baseline, baseline("/x/a"));
        again.settle();
        assert!(other.of_others(home.path()).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(home.path().join(FOLDER_NAME)).unwrap().count(), 0);
    }

    #[test]
    fn one_that_is_damaged_is_an_error_and_stays() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(FOLDER_NAME);
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("a.json"), "{").unwrap();
        let error = Baselines::default().of_others(home.path()).err().unwrap().to_string();
        assert!(error.contains("a.json is damaged"), "{error}");
        assert!(Abandoned::all(home.path()).is_empty());
        assert!(folder.join("a.json").exists());
    }
}
