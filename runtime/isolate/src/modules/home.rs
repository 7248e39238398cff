//! What the modules of one extension share: who it is, what it may import, and which files it has loaded.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::OnceLock;
use std::sync::PoisonError;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;

use deno_error::JsErrorBox;
use deno_runtime::deno_permissions::OpenAccessKind;
use deno_runtime::deno_permissions::PermissionsContainer;
use sha2::Digest;
use sha2::Sha256;

use super::outside;
use crate::message::LoadedFile;
use crate::message::Outside;

/// What is known once the isolate has an extension, and the files it was loaded from. Clones, such as
/// those of worker threads, share it.
#[derive(Clone, Default)]
pub struct Home(Arc<House>);

#[derive(Default)]
struct House {
    resident: OnceLock<Resident>,
    /// Whether any file has been loaded since somebody asked.
    any_loaded: AtomicBool,
    loaded: Mutex<Loaded>,
}

struct Resident {
    id: String,
    folder: PathBuf,
    permissions: PermissionsContainer,
    outside: Outside,
}

#[derive(Default)]
struct Loaded {
    /// Every file that was loaded, as it was when it was last read.
    known: HashMap<PathBuf, LoadedFile>,
    /// Those that nobody was told of yet.
    fresh: Vec<LoadedFile>,
}

impl Home {
    /// Everything below `folder` may be imported; for the rest the permissions decide.
    pub fn fill(
        &self,
        id: String,
        folder: PathBuf,
        permissions: PermissionsContainer,
        outside: Outside,
    ) {
        // Filled once, when the isolate takes on its extension.
        let _ = self.0.resident.set(Resident { id, folder, permissions, outside });
    }

    /// The extension's id, once it is known.
    pub fn id(&self) -> Option<&str> {
        self.0.resident.get().map(|resident| resident.id.as_str())
    }

    /// The files that were loaded as modules, by any of the extension's threads, since this was last
    /// called. A file that could not be read has no hash.
    pub fn take_loaded(&self) -> Vec<LoadedFile> {
        // Asked at every turn of the event loop, and nearly always there is nothing.
        if !self.0.any_loaded.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.any_loaded.store(false, Ordering::Relaxed);
        std::mem::take(&mut loaded.fresh)
    }

    /// Reads a file that is loaded as a module, and remembers it whatever comes of it: also what
    /// cannot be read or parsed is worth another try when the file changes. `real` is its path after
    /// links were followed.
    pub fn read(&self, path: &Path, real: &Path) -> std::io::Result<Vec<u8>> {
        let outside = self.outside().filter(|outside| !real.starts_with(&outside.folder));
        let is_package = is_in_package(real);
        // Installed packages are not what a person edits. Those of the repository are told of all the same.
        if is_package && outside.is_none() {
            return std::fs::read(path);
        }
        // The session hears of it in JSON, which has no such names.
        if real.to_str().is_none() {
            return Err(std::io::Error::other("its name is not UTF-8"));
        }
        let mut read = outside::read(path);
        let hash = read.as_ref().map_or_else(|_| String::new(), |(bytes, _)| sha256(bytes));
        let refused = outside.and_then(|outside| outside.refused_changes.as_ref());
        let mut is_refused = false;
        if let (Ok((_, changed)), Some(refused)) = (&read, refused)
            && let Err(error) = outside::check(refused, real, &hash, *changed)
        {
            is_refused = true;
            read = Err(error);
        }
        self.remember(LoadedFile { path: real.to_owned(), hash, is_package, is_refused });
        if outside.is_some()
            && let Some(manifest) = outside::manifest(real)
        {
            // It says which of the package's files is loaded.
            let hash = std::fs::read(&manifest).map_or_else(|_| String::new(), |it| sha256(&it));
            let is_refused = false;
            self.remember(LoadedFile { path: manifest, hash, is_package, is_refused });
        }
        read.map(|(bytes, _)| bytes)
    }

    fn outside(&self) -> Option<&Outside> {
        self.0.resident.get().map(|resident| &resident.outside)
    }

    fn remember(&self, file: LoadedFile) {
        let mut loaded = self.0.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.known.get(&file.path) == Some(&file) {
            return;
        }
        loaded.known.insert(file.path.clone(), file.clone());
        loaded.fresh.push(file);
        self.0.any_loaded.store(true, Ordering::Relaxed);
    }

    /// Where a file really is, if the extension may import it.
    pub fn check_readable(&self, path: &Path) -> Result<PathBuf, JsErrorBox> {
        let Some(resident) = self.0.resident.get() else {
            return Err(JsErrorBox::type_error(
                "no file can be imported before there is an extension",
            ));
        };
        // Links are followed first: it is the file they lead to that is read.
        let real = follow_links(path);
        if real.starts_with(&resident.folder) || is_in_package(&real) {
            return Ok(real);
        }
        let checked = resident
            .permissions
            .check_open(Cow::Borrowed(&real), OpenAccessKind::Read, Some("import"))
            .map(drop);
        match checked {
            Ok(()) => Ok(real),
            Err(_) => Err(JsErrorBox::type_error(format!(
                "{} has no read access to \"{}\"; it can be granted in the user's configuration",
                resident.id,
                path.display()
            ))),
        }
    }
}

fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// Where a path leads; the path itself if it leads nowhere.
pub fn follow_links(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

/// Whether a file belongs to an installed package. Such code may always be loaded: installing it
/// was the decision.
pub fn is_in_package(path: &Path) -> bool {
    path.components().any(|component| component.as_os_str() == "node_modules")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(home: &Home, path: &Path) -> std::io::Result<Vec<u8>> {
        home.read(path, &follow_links(path))
    }

    fn of(path: &Path, hash: &str) -> LoadedFile {
        LoadedFile {
            path: path.to_owned(),
            hash: hash.to_owned(),
            is_package: false,
            is_refused: false,
        }
    }

    #[test]
    fn a_file_is_told_of_once_and_again_when_something_else_was_read() {
        let temp = tempfile::tempdir().unwrap();
        let file = follow_links(temp.path()).join("a.mjs");
        let home = Home::default();
        assert!(home.take_loaded().is_empty());
        fs::write(&file, "abc").unwrap();
        assert_eq!(read(&home, &file).unwrap(), b"abc");
        read(&home, &file).unwrap();
        let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(home.take_loaded(), [of(&file, hash)]);
        read(&home, &file).unwrap();
        assert!(home.take_loaded().is_empty());
        fs::write(&file, "abcd").unwrap();
        read(&home.clone(), &file).unwrap();
        assert_eq!(home.take_loaded().len(), 1);
    }

    #[test]
    fn a_missing_file_is_told_of_without_a_hash() {
        let temp = tempfile::tempdir().unwrap();
        let missing = temp.path().join("folder/missing.mjs");
        let home = Home::default();
        assert!(read(&home, &missing).is_err());
        assert_eq!(home.take_loaded(), [of(&missing, "")]);
    }

    #[test]
    fn a_file_whose_name_is_no_text_is_not_loaded() {
        let temp = tempfile::tempdir().unwrap();
        let file = temp
            .path()
            .join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff"));
        fs::write(&file, "").unwrap();
        let home = Home::default();
        assert!(read(&home, &file).unwrap_err().to_string().contains("UTF-8"));
        assert!(home.take_loaded().is_empty());
    }

    #[test]
    fn links_are_followed_and_packages_left_out() {
        let temp = tempfile::tempdir().unwrap();
        let folder = follow_links(temp.path());
        let packages = folder.join("node_modules");
        fs::create_dir_all(packages.join("installed")).unwrap();
        fs::create_dir(folder.join("linked")).unwrap();
        std::os::unix::fs::symlink(folder.join("linked"), packages.join("linked")).unwrap();
        for path in [packages.join("installed/a.js"), folder.join("linked/b.js")] {
            fs::write(path, "").unwrap();
        }
        let home = Home::default();
        read(&home, &packages.join("installed/a.js")).unwrap();
        read(&home, &packages.join("linked/b.js")).unwrap();
        let paths: Vec<_> = home.take_loaded().into_iter().map(|file| file.path).collect();
        assert_eq!(paths, [folder.join("linked/b.js")]);
    }
}
