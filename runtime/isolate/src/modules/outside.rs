//! Modules from outside of an extension's folder. While an extension runs that may do less, it may have written them, to have
//! its code run with more rights than it has itself; so those that changed since it was started are not loaded.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use crate::message::FileTime;
use crate::message::RefusedChanges;

/// Reads a file, and says when it was last changed. Nobody can set that time but by setting the system's clock, also not by
/// moving another file to its place.
pub fn read(path: &Path) -> std::io::Result<(Vec<u8>, FileTime)> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    // Afterwards, so that a change while it was read counts.
    let about = file.metadata()?;
    Ok((bytes, FileTime(about.ctime(), about.ctime_nsec())))
}

/// Whether a file may be loaded, with what was in it and when it was last changed.
pub fn check(
    refused: &RefusedChanges,
    real: &Path,
    hash: &str,
    changed: FileTime,
) -> std::io::Result<()> {
    if changed <= refused.since || refused.accepted.get(real).is_some_and(|known| known == hash) {
        return Ok(());
    }
    Err(std::io::Error::other(format!(
        "it waits for your approval: it changed while {} ran, which has a smaller grant",
        refused.who
    )))
}

/// The file that says which files of an installed package are loaded.
pub fn manifest(file: &Path) -> Option<PathBuf> {
    let packages = file
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|it| it == "node_modules"))?;
    let mut names = file.strip_prefix(packages).ok()?.components();
    let first = names.next()?;
    let mut package = packages.join(first);
    if first.as_os_str().as_encoded_bytes().starts_with(b"@") {
        package.push(names.next()?);
    }
    // A file right below `node_modules` is a package without one.
    names.next().map(|_| package.join("package.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_refused_unless_its_content_is_known() {
        let (path, since) = (Path::new("/x"), FileTime(10, 5));
        let accepted = [(path.to_owned(), "known".to_owned())].into();
        let refused = RefusedChanges { who: "user:meek".into(), since, accepted };
        let check = |path, hash, changed| check(&refused, path, hash, changed);
        assert!(check(path, "other", since).is_ok());
        assert!(check(path, "known", FileTime(10, 6)).is_ok());
        let refusal = check(path, "other", FileTime(10, 6)).unwrap_err().to_string();
        assert!(refusal.contains("while user:meek ran"), "{refusal}");
        assert!(check(Path::new("/y"), "known", FileTime(11, 0)).is_err());
        assert!(check(path, "other", FileTime(9, 9)).is_ok());
    }

    #[test]
    fn a_file_that_is_moved_to_a_place_has_changed() {
        let temp = tempfile::tempdir().unwrap();
        let (old, new) = (temp.path().join("old"), temp.path().join("new"));
        std::fs::write(&old, "x").unwrap();
        let (_, before) = read(&old).unwrap();
        loop {
            std::fs::rename(&old, &new).unwrap();
            // The clock of files stands still for some milliseconds at a time.
            if read(&new).unwrap().1 > before {
                return;
            }
            std::fs::rename(&new, &old).unwrap();
        }
    }

    #[test]
    fn the_manifest_of_a_package_is_in_its_folder() {
        let of = |file: &str| manifest(Path::new(file));
        assert_eq!(of("/r/node_modules/a/lib/x.js"), Some("/r/node_modules/a/package.json".into()));
        assert_eq!(
            of("/r/node_modules/@s/a/x.js"),
            Some("/r/node_modules/@s/a/package.json".into())
        );
        assert_eq!(
            of("/r/node_modules/a/node_modules/b/x.js"),
            Some("/r/node_modules/a/node_modules/b/package.json".into())
        );
        assert_eq!(of("/r/node_modules/x.js"), None);
        assert_eq!(of("/r/lib/x.js"), None);
    }
}
