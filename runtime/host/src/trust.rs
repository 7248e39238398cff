//! Workspaces whose extensions the person lets run, and extensions whose content the person has seen;
//! both remembered outside of any repository.

use std::collections::BTreeMap;
use std::fs::File;
use std::fs::Metadata;
use std::io::ErrorKind;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use serde::Deserialize;
use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;
use walkdir::DirEntry;
use walkdir::WalkDir;

use crate::store::JsonStore;
use crate::store::StoreError;
use crate::store::folder_key;
use crate::store::now;

/// The name of the file in the home folder.
pub const FILE_NAME: &str = "trust.json";

/// The most files, links and folders of an extension whose content is reviewed. With its packages an
/// extension has some thousands; more could not be looked at in the time a start may take.
pub const MAX_REVIEW_FILES: u64 = 20_000;

/// The most bytes of an extension whose content is reviewed, for the same reason.
pub const MAX_REVIEW_BYTES: u64 = 512 * 1024 * 1024;

/// The most files, links and folders of an extension that are compared by what the system says of them. Its content is not
/// read then, so ten times as many take no longer.
const MAX_COMPARED_FILES: u64 = 10 * MAX_REVIEW_FILES;

/// How much of a file is in memory at a time, in bytes.
const READ_BYTES: usize = 64 * 1024;

/// A workspace the person trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedFolder {
    /// Its root, without links.
    pub path: PathBuf,
    /// Since when, in RFC 3339.
    pub trusted_at: String,
    /// Whether that folder still stands there. Another one at its place is not trusted.
    pub is_there: bool,
}

/// Which folder it is, beside its path.
///
/// This protects from a folder that later stands at the path of one that was trusted: another checkout, a
/// new archive unpacked in `/tmp`, another disk at the same mount point. It says nothing about what is in
/// the folder: a `git pull` into a trusted workspace is trusted, as is whatever else somebody writes into
/// it (the review of content is for that). Without a time of birth a new folder can be given the number
/// of one that was deleted, and then passes for it. A workspace that was moved, copied or restored has to
/// be trusted again. The device is left out: its number may change with every start of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    inode: u64,
    /// Nanoseconds since 1970, where the file system knows.
    born: Option<u64>,
}

impl Identity {
    fn of(folder: &Metadata) -> Self {
        let born = folder.created().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self { inode: folder.ino(), born: born.map(|since| since.as_nanos() as u64) }
    }

    /// `None` if there is no folder.
    fn at(path: &Path) -> Option<Self> {
        let folder = std::fs::metadata(path).ok()?;
        folder.is_dir().then(|| Self::of(&folder))
    }
}

#[derive(Serialize, Deserialize)]
struct Trusted {
    trusted_at: String,
    #[serde(flatten)]
    identity: Identity,
}

#[derive(Serialize, Deserialize)]
struct Reviewed {
    hash: String,
    reviewed_at: String,
}

/// An extension whose content appeared or changed while one with a smaller grant ran, until the person approves it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The content it had before, if there was any, as a [`State`]: with this it may run.
    pub before: Option<String>,
    /// Files outside of its folder that it imports and that changed, with the SHA-256 of what was in them before; nothing if
    /// they were not there, or nobody had looked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub outside: BTreeMap<PathBuf, String>,
    /// Since when, in RFC 3339.
    pub held_at: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Remembered {
    /// By the root of the workspace.
    folders: BTreeMap<String, Trusted>,
    /// By the extension's folder: the content that was approved last.
    reviewed: BTreeMap<String, Reviewed>,
    /// By the extension's folder: what waits for an approval, also in later sessions.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    held: BTreeMap<String, Held>,
}

/// What the person trusts. A workspace is named by its root, as [`crate::discovery::project_root`] gives it.
pub struct TrustStore(JsonStore<Remembered>);

impl TrustStore {
    /// That of a home folder.
    pub fn of(home: &Path) -> Self {
        Self(JsonStore::new(home, FILE_NAME))
    }

    /// Whether a workspace is trusted. If that cannot be found out, it is not.
    pub fn is_trusted(&self, root: &Path) -> bool {
        self.check(root).unwrap_or(false)
    }

    /// Whether a workspace is trusted, or why that cannot be found out.
    pub fn check(&self, root: &Path) -> Result<bool, StoreError> {
        let remembered = self.0.read()?;
        let Ok(key) = folder_key(root) else { return Ok(false) };
        let trusted = remembered.folders.get(&key).map(|folder| folder.identity);
        Ok(trusted.is_some() && trusted == Identity::at(Path::new(&key)))
    }

    /// Trusts the workspace that now stands there.
    pub fn trust(&self, root: &Path) -> Result<(), StoreError> {
        let key = key(root)?;
        let identity = Identity::at(Path::new(&key)).ok_or_else(|| StoreError::Read {
            path: root.to_owned(),
            source: std::io::Error::new(ErrorKind::NotADirectory, "it is not a folder"),
        })?;
        let trusted = Trusted { trusted_at: now(), identity };
        self.0.change(|remembered| {
            remembered.folders.insert(key, trusted);
        })
    }

    /// Trusts a workspace no longer, and forgets what was reviewed in it; whether it was trusted.
    pub fn revoke(&self, root: &Path) -> Result<bool, StoreError> {
        // A link may stand now where the folder stood; it is meant by its own path, too.
        let written =
            std::path::absolute(root).ok().and_then(|path| path.to_str().map(str::to_owned));
        let keys: Vec<_> = [Some(key(root)?), written].into_iter().flatten().collect();
        self.0.change(|remembered| {
            let before = remembered.folders.len();
            remembered.folders.retain(|folder, _| !keys.contains(folder));
            remembered
                .reviewed
                .retain(|folder, _| !keys.iter().any(|root| Path::new(folder).starts_with(root)));
            remembered.folders.len() < before
        })
    }

    /// Every trusted workspace, by path.
    pub fn list(&self) -> Result<Vec<TrustedFolder>, StoreError> {
        let remembered = self.0.read()?.folders.into_iter();
        Ok(remembered
            .map(|(path, folder)| TrustedFolder {
                is_there: Identity::at(Path::new(&path)) == Some(folder.identity),
                path: PathBuf::from(path),
                trusted_at: folder.trusted_at,
            })
            .collect())
    }

    /// Whether exactly this content of an extension was approved, and no other since. If that cannot be
    /// found out, it was not.
    pub fn is_reviewed(&self, folder: &Path, hash: &str) -> bool {
        let Ok(remembered) = self.0.read() else { return false };
        let Ok(key) = folder_key(folder) else { return false };
        let Some(reviewed) = remembered.reviewed.get(&key) else { return false };
        // Who approved files outside as well has approved the folder.
        reviewed.hash == hash || reviewed.hash.split(OUTSIDE_MARK).next() == Some(hash)
    }

    /// What a person approves now: the content of an extension's folder, and of the files outside of it that keep the extension
    /// from running.
    pub fn content_to_review(&self, folder: &Path) -> std::io::Result<String> {
        let hash = content_hash(folder)?;
        let held = self.held(folder).map_err(std::io::Error::other)?;
        let outside = held.map(|held| held.outside).unwrap_or_default();
        Ok(with_outside(hash, &changed(&outside)))
    }

    /// Remembers that an extension was approved with this content; see [`Self::content_to_review`].
    pub fn review(&self, folder: &Path, hash: &str) -> Result<(), StoreError> {
        let key = key(folder)?;
        let reviewed = Reviewed { hash: hash.to_owned(), reviewed_at: now() };
        self.0.change(|remembered| {
            remembered.held.remove(&key);
            remembered.reviewed.insert(key, reviewed);
        })
    }

    /// Keeps an extension from running until its content is approved, or is again what it was before: that of its folder, and
    /// of files outside of it.
    pub fn hold(
        &self,
        folder: &Path,
        before: Option<&str>,
        outside: &BTreeMap<PathBuf, String>,
    ) -> Result<(), StoreError> {
        let key = key(folder)?;
        let is_complete = |held: &Held| outside.keys().all(|file| held.outside.contains_key(file));
        if self.0.read()?.held.get(&key).is_some_and(is_complete) {
            return Ok(());
        }
        let before = before.map(str::to_owned);
        self.0.change(|remembered| {
            let held = remembered.held.entry(key).or_insert_with(|| Held {
                before,
                outside: BTreeMap::new(),
                held_at: now(),
            });
            for (file, hash) in outside {
                held.outside.entry(file.clone()).or_insert_with(|| hash.clone());
            }
        })
    }

    /// Whether an extension is kept from running. If that cannot be found out, it is.
    pub fn held(&self, folder: &Path) -> Result<Option<Held>, StoreError> {
        let mut remembered = self.0.read()?;
        Ok(remembered.held.remove(&key(folder)?))
    }

    /// Lets an extension run again that was held: its content is what it was before.
    pub fn release(&self, folder: &Path) -> Result<(), StoreError> {
        let key = key(folder)?;
        self.0.change(|remembered| {
            remembered.held.remove(&key);
        })
    }
}

fn key(folder: &Path) -> Result<String, StoreError> {
    folder_key(folder).map_err(|source| StoreError::Read { path: folder.to_owned(), source })
}

/// SHA-256, in hexadecimal, of everything in an extension's folder: names, contents and links, packages
/// included, because code is code. Permissions and times do not count. Behind a link to a file lies
/// content that counts; behind a link to a folder only the link does, so that what it leads to outside
/// of the extension's folder can change without a review.
pub fn content_hash(folder: &Path) -> std::io::Result<String> {
    hash_within(folder, MAX_REVIEW_FILES, MAX_REVIEW_BYTES)
}

/// What tells whether a folder is as it was.
pub struct State {
    /// The hash of its content; or, where that cannot be read whole, what tells its files apart from changed ones.
    pub text: String,
    /// Why the content cannot be read whole, and so cannot be approved.
    pub unread: Option<std::io::Error>,
}

impl State {
    /// That of a folder now.
    pub fn of(folder: &Path) -> std::io::Result<Self> {
        match content_hash(folder) {
            Ok(text) => Ok(Self { text, unread: None }),
            Err(error) => {
                Ok(Self { text: fingerprint(folder, MAX_COMPARED_FILES)?, unread: Some(error) })
            }
        }
    }
}

/// What begins a state that is no hash of a content. No hash begins like this.
const FINGERPRINT: &str = "files:";

/// Names, sizes, times and inodes of everything in a folder. Only the system sets the time at which a file last changed, so
/// none is changed without a change here. A folder that was copied is another, which a content would not be.
fn fingerprint(folder: &Path, max_files: u64) -> std::io::Result<String> {
    let root = std::fs::canonicalize(folder)?;
    let mut hash = Sha256::new();
    let mut add = |name: &Path, data: &Metadata| {
        add_field(&mut hash, name.as_os_str().as_bytes());
        for number in [data.dev(), data.ino(), data.size(), u64::from(data.mode())] {
            hash.update(number.to_le_bytes());
        }
        for time in [data.mtime(), data.mtime_nsec(), data.ctime(), data.ctime_nsec()] {
            hash.update(time.to_le_bytes());
        }
    };
    let mut files = 0;
    for entry in WalkDir::new(&root).min_depth(1).sort_by_file_name() {
        let entry = entry?;
        files += 1;
        if files > max_files {
            let message = format!("{} has more than {max_files} files", folder.display());
            return Err(std::io::Error::other(message));
        }
        let name = entry.path().strip_prefix(&root).unwrap_or(entry.path());
        add(name, &std::fs::symlink_metadata(entry.path())?);
        if entry.file_type().is_symlink()
            && let Ok(target) = std::fs::metadata(entry.path())
        {
            // What is behind it counts as it does in the hash; files of the system have no content that stays.
            if target.is_file() && target.size() == 0 {
                let message = format!("{} leads to nothing that stays", entry.path().display());
                return Err(std::io::Error::other(message));
            }
            add(name, &target);
        }
    }
    Ok(format!("{FINGERPRINT}{}", hex(&hash.finalize())))
}

/// Between the hash of a folder's content and that of files outside of it.
const OUTSIDE_MARK: char = '+';

/// The hash of a content with files outside of the extension's folder that changed, and what is in them now.
pub fn with_outside(folder: String, outside: &BTreeMap<PathBuf, String>) -> String {
    if outside.is_empty() {
        return folder;
    }
    let mut hash = Sha256::new();
    for (file, content) in outside {
        add_field(&mut hash, file.as_os_str().as_bytes());
        add_field(&mut hash, content.as_bytes());
    }
    format!("{folder}{OUTSIDE_MARK}{}", hex(&hash.finalize()))
}

/// Those of the files whose content is another now, with the hash of what is in them; nothing if they cannot be read.
pub fn changed(files: &BTreeMap<PathBuf, String>) -> BTreeMap<PathBuf, String> {
    let now = |file: &Path| {
        let hash = hash_file(file, MAX_REVIEW_BYTES).ok();
        hash.map_or_else(String::new, |(hash, _)| hex(&hash))
    };
    let all = files.iter().map(|(file, before)| (file, before, now(file)));
    all.filter(|(_, before, now)| *before != now)
        .map(|(file, _, now)| (file.clone(), now))
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_within(folder: &Path, max_files: u64, max_bytes: u64) -> std::io::Result<String> {
    let root = std::fs::canonicalize(folder)?;
    let too_much = |what: String| {
        let message = format!("{} has more than {what}, too much to review", folder.display());
        std::io::Error::other(message)
    };
    let mut hash = Sha256::new();
    let (mut files, mut bytes) = (0, 0);
    for entry in WalkDir::new(&root).min_depth(1).sort_by_file_name() {
        let entry = entry?;
        files += 1;
        if files > max_files {
            return Err(too_much(format!("{max_files} files and folders")));
        }
        if entry.file_type().is_dir() {
            continue;
        }
        let name = entry.path().strip_prefix(&root).unwrap_or(entry.path());
        add_field(&mut hash, name.as_os_str().as_bytes());
        // One byte more than is allowed tells that there is more.
        bytes += add_content(&mut hash, &entry, max_bytes - bytes + 1)?;
        if bytes > max_bytes {
            return Err(too_much(format!("{max_bytes} bytes")));
        }
    }
    Ok(hex(&hash.finalize()))
}

/// Adds what stands behind one name; how many bytes of files that were.
fn add_content(hash: &mut Sha256, entry: &DirEntry, max_bytes: u64) -> std::io::Result<u64> {
    let kind = entry.file_type();
    if kind.is_symlink() {
        hash.update(b"l");
        add_field(hash, std::fs::read_link(entry.path())?.as_os_str().as_bytes());
    }
    // A link to nothing, or into itself, has no content; neither have pipes and the like, which must
    // not be opened.
    let is_file = kind.is_file()
        || kind.is_symlink()
            && std::fs::metadata(entry.path()).is_ok_and(|target| target.is_file());
    if !is_file {
        hash.update(b"o");
        return Ok(0);
    }
    let (content, length) = hash_file(entry.path(), max_bytes)?;
    hash.update(b"f");
    hash.update(length.to_le_bytes());
    hash.update(content);
    Ok(length)
}

/// Adds bytes with their number, so that what belongs to one field cannot pass for part of the next.
fn add_field(hash: &mut Sha256, bytes: &[u8]) {
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

/// The hash of a file's first bytes, and how many those were.
fn hash_file(path: &Path, max_bytes: u64) -> std::io::Result<([u8; 32], u64)> {
    let named = |error: std::io::Error| {
        std::io::Error::new(error.kind(), format!("{} cannot be read: {error}", path.display()))
    };
    // Should a pipe have taken the file's place, it must not keep us waiting.
    let file =
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(named)?;
    let mut file = file.take(max_bytes);
    let mut buffer = vec![0; READ_BYTES];
    let mut hash = Sha256::new();
    let mut length = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((hash.finalize().into(), length)),
            Ok(read) => {
                hash.update(&buffer[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(named(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folder(root: &Path, name: &str) -> PathBuf {
        let folder = root.join(name);
        fs::create_dir(&folder).unwrap();
        fs::canonicalize(folder).unwrap()
    }

    #[test]
    fn a_workspace_is_trusted_from_then_on_and_no_other_is() {
        let temp = tempfile::tempdir().unwrap();
        let (a, b) = (folder(temp.path(), "a"), folder(temp.path(), "b"));
        let home = temp.path().join("home");
        let store = TrustStore::of(&home);
        assert!(!store.is_trusted(&a));
        store.trust(&a).unwrap();
        assert!(TrustStore::of(&home).is_trusted(&a));
        assert!(!store.is_trusted(&b));
        assert!(!store.is_trusted(&folder(&a, "below")));
        let link = temp.path().join("link");
        symlink(&a, &link).unwrap();
        assert!(store.is_trusted(&link));
    }

    #[test]
    fn another_folder_at_the_same_path_is_not_trusted() {
        let temp = tempfile::tempdir().unwrap();
        let a = folder(temp.path(), "a");
        let store = TrustStore::of(temp.path());
        store.trust(&a).unwrap();
        assert!(store.list().unwrap()[0].is_there);
        fs::rename(&a, temp.path().join("moved")).unwrap();
        assert!(!store.check(&a).unwrap());
        folder(temp.path(), "a");
        assert!(!store.check(&a).unwrap());
        assert!(!store.list().unwrap()[0].is_there);
        // The folder that was trusted, at another path, is not either.
        assert!(!store.is_trusted(&temp.path().join("moved")));
        store.trust(&a).unwrap();
        assert!(store.is_trusted(&a));
    }

    #[test]
    fn trust_can_be_taken_back_also_when_the_folder_is_gone() {
        let temp = tempfile::tempdir().unwrap();
        let (a, b) = (folder(temp.path(), "a"), folder(temp.path(), "b"));
        let store = TrustStore::of(temp.path());
        store.trust(&a).unwrap();
        store.trust(&b).unwrap();
        assert!(store.revoke(&a).unwrap());
        assert!(!store.revoke(&a).unwrap());
        assert!(!store.is_trusted(&a));
        fs::remove_dir(&b).unwrap();
        symlink(&a, &b).unwrap();
        assert!(store.revoke(&b).unwrap());
        assert!(store.list().unwrap().is_empty());
    }

    #[test]
    fn trusted_workspaces_are_listed_by_path() {
        let temp = tempfile::tempdir().unwrap();
        let (b, a) = (folder(temp.path(), "b"), folder(temp.path(), "a"));
        let store = TrustStore::of(temp.path());
        assert!(store.list().unwrap().is_empty());
        store.trust(&b).unwrap();
        store.trust(&a).unwrap();
        let list = store.list().unwrap();
        assert_eq!(list.iter().map(|folder| &folder.path).collect::<Vec<_>>(), [&a, &b]);
        assert!(list.iter().all(|folder| folder.is_there));
        assert!(chrono::DateTime::parse_from_rfc3339(&list[0].trusted_at).is_ok());
    }

    #[test]
    fn only_a_folder_that_is_there_can_be_trusted() {
        let temp = tempfile::tempdir().unwrap();
        let store = TrustStore::of(&temp.path().join("home"));
        fs::write(temp.path().join("file"), "").unwrap();
        for name in ["file", "missing"] {
            let error = store.trust(&temp.path().join(name)).err().unwrap().to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(store.list().unwrap().is_empty());
    }

    #[test]
    fn a_damaged_file_trusts_nothing_and_stays_as_it_is() {
        let temp = tempfile::tempdir().unwrap();
        let a = folder(temp.path(), "a");
        let store = TrustStore::of(temp.path());
        store.trust(&a).unwrap();
        store.review(&a, "hash").unwrap();
        let file = temp.path().join(FILE_NAME);
        let mut text = fs::read_to_string(&file).unwrap();
        text.truncate(text.len() / 2);
        fs::write(&file, &text).unwrap();
        assert!(!store.is_trusted(&a));
        assert!(!store.is_reviewed(&a, "hash"));
        assert!(matches!(store.check(&a), Err(StoreError::Corrupt { .. })));
        assert!(store.trust(&a).is_err());
        assert!(store.review(&a, "hash").is_err());
        assert!(store.revoke(&a).is_err());
        assert!(store.held(&a).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }

    #[test]
    fn workspaces_trusted_at_the_same_moment_are_all_trusted() {
        let temp = tempfile::tempdir().unwrap();
        let folders: Vec<_> =
            (0..8).map(|number| folder(temp.path(), &number.to_string())).collect();
        std::thread::scope(|scope| {
            for folder in &folders {
                let home = temp.path();
                scope.spawn(move || TrustStore::of(home).trust(folder).unwrap());
            }
        });
        let store = TrustStore::of(temp.path());
        assert!(folders.iter().all(|folder| store.is_trusted(folder)));
        assert_eq!(store.list().unwrap().len(), folders.len());
    }

    #[test]
    fn the_content_approved_last_is_reviewed_until_trust_is_taken_back() {
        let temp = tempfile::tempdir().unwrap();
        let root = folder(temp.path(), "root");
        let (a, other) = (folder(&root, "a"), folder(temp.path(), "other"));
        let store = TrustStore::of(temp.path());
        assert!(!store.is_reviewed(&a, "one"));
        store.review(&a, "one").unwrap();
        store.review(&other, "one").unwrap();
        assert!(store.is_reviewed(&a, "one"));
        store.review(&a, "two").unwrap();
        assert!(store.is_reviewed(&a, "two"));
        assert!(!store.is_reviewed(&a, "one"));
        assert!(!store.revoke(&root).unwrap());
        assert!(!store.is_reviewed(&a, "two"));
        assert!(store.is_reviewed(&other, "one"));
    }

    #[test]
    fn what_is_held_stays_so_until_it_is_reviewed_or_released() {
        let temp = tempfile::tempdir().unwrap();
        let (a, b) = (folder(temp.path(), "a"), folder(temp.path(), "b"));
        let store = TrustStore::of(temp.path());
        assert_eq!(store.held(&a).unwrap(), None);
        store.hold(&a, Some("first"), &BTreeMap::new()).unwrap();
        store.hold(&b, None, &BTreeMap::new()).unwrap();
        // What it was before is what it was when it was held first.
        store.hold(&a, Some("second"), &BTreeMap::new()).unwrap();
        assert_eq!(TrustStore::of(temp.path()).held(&a).unwrap().unwrap().before.unwrap(), "first");
        store.review(&a, "third").unwrap();
        assert_eq!(store.held(&a).unwrap(), None);
        store.release(&b).unwrap();
        assert_eq!(store.held(&b).unwrap(), None);
    }

    #[test]
    fn the_hash_changes_with_content_names_and_files() {
        let temp = tempfile::tempdir().unwrap();
        let root = folder(temp.path(), "root");
        fs::create_dir_all(root.join("node_modules/a")).unwrap();
        let mut seen = vec![content_hash(&root).unwrap()];
        let mut step = |what: &str| {
            let hash = content_hash(&root).unwrap();
            assert_eq!(hash.len(), 64);
            assert!(!seen.contains(&hash), "{what}");
            assert_eq!(content_hash(&root).unwrap(), hash);
            seen.push(hash);
        };
        fs::write(root.join("extension.mjs"), "ab").unwrap();
        step("a file was added");
        fs::write(root.join("extension.mjs"), "cd").unwrap();
        step("a file was changed");
        fs::write(root.join("node_modules/a/index.js"), "x").unwrap();
        step("a package was added");
        fs::rename(root.join("node_modules/a/index.js"), root.join("node_modules/a/main.js"))
            .unwrap();
        step("a file was renamed");
        fs::write(root.join("empty"), "").unwrap();
        step("an empty file was added");
        fs::remove_file(root.join("extension.mjs")).unwrap();
        step("a file was removed");
    }

    #[test]
    fn bytes_that_move_between_files_are_noticed_and_permissions_are_not() {
        let temp = tempfile::tempdir().unwrap();
        let root = folder(temp.path(), "root");
        fs::write(root.join("a"), "xy").unwrap();
        fs::write(root.join("b"), "z").unwrap();
        let before = content_hash(&root).unwrap();
        fs::set_permissions(root.join("a"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(content_hash(&root).unwrap(), before);
        fs::write(root.join("a"), "x").unwrap();
        fs::write(root.join("b"), "yz").unwrap();
        assert_ne!(content_hash(&root).unwrap(), before);
    }

    #[test]
    fn a_link_counts_and_so_does_the_file_behind_it() {
        let temp = tempfile::tempdir().unwrap();
        let (root, outside) = (folder(temp.path(), "root"), folder(temp.path(), "outside"));
        fs::write(outside.join("file"), "one").unwrap();
        symlink(outside.join("file"), root.join("link")).unwrap();
        symlink(&outside, root.join("folder")).unwrap();
        symlink("nothing", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let before = content_hash(&root).unwrap();
        fs::write(outside.join("other"), "behind a link to a folder").unwrap();
        assert_eq!(content_hash(&root).unwrap(), before);
        fs::write(outside.join("file"), "two").unwrap();
        let changed = content_hash(&root).unwrap();
        assert_ne!(changed, before);
        fs::copy(outside.join("file"), outside.join("copy")).unwrap();
        fs::remove_file(root.join("link")).unwrap();
        symlink(outside.join("copy"), root.join("link")).unwrap();
        assert_ne!(content_hash(&root).unwrap(), changed);
        // The extension's folder itself may be reached by a link.
        symlink(&root, temp.path().join("reached")).unwrap();
        let reached = content_hash(&temp.path().join("reached")).unwrap();
        assert_eq!(reached, content_hash(&root).unwrap());
    }

    #[test]
    fn files_outside_count_as_long_as_they_are_not_what_they_were() {
        let temp = tempfile::tempdir().unwrap();
        let (home, store) = (temp.path().join("home"), TrustStore::of(&temp.path().join("home")));
        fs::create_dir(home).unwrap();
        let a = folder(temp.path(), "a");
        let (file, absent) = (temp.path().join("lib.mjs"), temp.path().join("absent.mjs"));
        fs::write(&file, "abc").unwrap();
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let known = [(file.clone(), abc.to_owned())].into();
        let alone = content_hash(&a).unwrap();
        store.hold(&a, Some(&alone), &known).unwrap();
        assert_eq!(store.content_to_review(&a).unwrap(), alone);
        fs::write(&file, "other").unwrap();
        let both = store.content_to_review(&a).unwrap();
        assert_ne!(both, alone);
        // One that was noticed later is added; what was known stays.
        let more = [(file.clone(), String::new()), (absent.clone(), String::new())].into();
        store.hold(&a, None, &more).unwrap();
        assert_eq!(store.held(&a).unwrap().unwrap().outside[&file], abc);
        assert_eq!(store.content_to_review(&a).unwrap(), both);
        fs::write(&absent, "").unwrap();
        assert_ne!(store.content_to_review(&a).unwrap(), both);
        store.review(&a, &both).unwrap();
        assert!(store.is_reviewed(&a, &both) && store.is_reviewed(&a, &alone));
        store.review(&a, &alone).unwrap();
        assert!(!store.is_reviewed(&a, &both));
    }

    #[test]
    fn a_content_that_cannot_be_read_whole_is_told_from_a_changed_one() {
        let temp = tempfile::tempdir().unwrap();
        let root = folder(temp.path(), "root");
        fs::write(root.join("a"), "one").unwrap();
        assert_eq!(State::of(&root).unwrap().text, content_hash(&root).unwrap());
        let large = File::create(root.join("large")).unwrap();
        large.set_len(MAX_REVIEW_BYTES + 1).unwrap();
        let before = State::of(&root).unwrap();
        assert!(before.unread.unwrap().to_string().contains("too much to review"));
        assert_eq!(State::of(&root).unwrap().text, before.text);
        fs::write(root.join("a"), "two").unwrap();
        let file = File::options().write(true).open(root.join("a")).unwrap();
        file.set_modified(UNIX_EPOCH).unwrap();
        let changed = State::of(&root).unwrap();
        assert_ne!(changed.text, before.text);
        fs::remove_file(root.join("large")).unwrap();
        // What gives an error when it is read, and has no size and no time that mean anything.
        symlink("/proc/self/mem", root.join("link")).unwrap();
        assert!(State::of(&root).is_err());
        assert!(fingerprint(&folder(&root, "empty"), 0).is_ok());
        assert!(fingerprint(&root, 1).is_err());
    }

    #[test]
    fn a_folder_without_a_name_that_can_be_written_is_held() {
        use std::ffi::OsStr;
        let temp = tempfile::tempdir().unwrap();
        let store = TrustStore::of(temp.path());
        let odd = temp.path().join(OsStr::from_bytes(b"bad\xff"));
        fs::create_dir(&odd).unwrap();
        assert!(store.held(&odd).is_err());
        assert_eq!(store.held(temp.path()).unwrap(), None);
    }

    #[test]
    fn too_many_files_or_bytes_are_an_error() {
        let temp = tempfile::tempdir().unwrap();
        let root = folder(temp.path(), "root");
        fs::write(root.join("a"), "12345").unwrap();
        fs::write(root.join("b"), "67890").unwrap();
        assert!(hash_within(&root, 2, 10).is_ok());
        let error = hash_within(&root, 1, 10).err().unwrap().to_string();
        assert!(error.contains("more than 1 files and folders"), "{error}");
        let error = hash_within(&root, 2, 9).err().unwrap().to_string();
        assert!(error.contains("more than 9 bytes"), "{error}");
    }
}
