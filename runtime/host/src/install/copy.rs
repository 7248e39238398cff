//! Copying an extension's files: within bounds, and nothing that leads out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Component;
use std::path::Path;

use walkdir::WalkDir;

use super::InstallError;
use super::RECORD_FILE;

/// How much may be copied.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// Files, folders and links.
    pub files: usize,
    /// Bytes of all files together.
    pub bytes: u64,
}

/// Copies everything in `from` to `to`, which is made; repositories and old records are left out.
pub(super) fn copy(from: &Path, to: &Path, bounds: Bounds) -> Result<(), InstallError> {
    let root = fs::canonicalize(from).map_err(|source| io(from, source))?;
    let is_ours = |entry: &walkdir::DirEntry| {
        entry.depth() == 0
            || (entry.file_name() != ".git"
                && !(entry.depth() == 1 && entry.file_name() == RECORD_FILE))
    };
    let (mut files, mut bytes) = (0, 0);
    for entry in WalkDir::new(&root).into_iter().filter_entry(is_ours) {
        let entry = entry.map_err(|error| {
            let path = error.path().unwrap_or(&root).to_owned();
            InstallError::Io { path, source: error.into() }
        })?;
        files += 1;
        // The folder itself does not count.
        if files > bounds.files + 1 {
            return Err(InstallError::TooManyFiles { limit: bounds.files });
        }
        let path = entry.path();
        let relative = path.strip_prefix(&root).unwrap_or(path);
        let target = to.join(relative);
        let kind = entry.file_type();
        if kind.is_dir() {
            fs::create_dir(&target).map_err(|source| io(&target, source))?;
        } else if kind.is_symlink() {
            copy_link(&root, path, relative, &target)?;
        } else if kind.is_file() {
            bytes += entry.metadata().map_or(0, |data| data.len());
            if bytes > bounds.bytes {
                return Err(InstallError::TooLarge { limit: bounds.bytes });
            }
            copy_file(path, &target)?;
        } else {
            return Err(InstallError::Special { path: relative.to_owned() });
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<(), InstallError> {
    fs::copy(from, to).map_err(|source| io(from, source))?;
    let mode = fs::metadata(to).map_err(|source| io(to, source))?.permissions().mode();
    // Programs stay programs. Nothing is writable for others, nor runs as somebody else.
    let mode = (mode & 0o755) | 0o600;
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(|source| io(to, source))
}

fn copy_link(root: &Path, path: &Path, relative: &Path, to: &Path) -> Result<(), InstallError> {
    let target = fs::read_link(path).map_err(|source| io(path, source))?;
    // By its text it must stay inside, or the copy would lead to where the original lies; and by where it
    // ends, for a link may lead on to another. One that ends nowhere may lead anywhere tomorrow.
    let ends_inside = fs::canonicalize(path).is_ok_and(|end| end.starts_with(root));
    if !ends_inside || !stays_inside(relative, &target) {
        return Err(InstallError::Escapes { path: relative.to_owned(), target });
    }
    symlink(&target, to).map_err(|source| io(to, source))
}

/// Whether a link at `link`, a path relative to the root, names something below the root.
fn stays_inside(link: &Path, target: &Path) -> bool {
    let mut depth = link.components().count().saturating_sub(1);
    for part in target.components() {
        match part {
            Component::CurDir => {}
            Component::Normal(_) => depth += 1,
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return false,
        }
    }
    true
}

fn io(path: &Path, source: std::io::Error) -> InstallError {
    InstallError::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { files: 10, bytes: 100 };

    fn folders() -> (tempfile::TempDir, std::path::PathBuf, std::path::PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let (from, to) = (temp.path().join("from"), temp.path().join("to"));
        fs::create_dir(&from).unwrap();
        (temp, from, to)
    }

    #[test]
    fn files_folders_and_inner_links_are_copied_and_repositories_are_not() {
        let (_temp, from, to) = folders();
        fs::create_dir_all(from.join("lib/.git")).unwrap();
        fs::create_dir(from.join(".git")).unwrap();
        fs::write(from.join(RECORD_FILE), "{}").unwrap();
        fs::write(from.join("lib/run.sh"), "x").unwrap();
        fs::set_permissions(from.join("lib/run.sh"), fs::Permissions::from_mode(0o4777)).unwrap();
        symlink("lib/run.sh", from.join("link")).unwrap();
        copy(&from, &to, BOUNDS).unwrap();
        assert_eq!(fs::read_link(to.join("link")).unwrap(), Path::new("lib/run.sh"));
        let mode = fs::metadata(to.join("lib/run.sh")).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o755);
        for left_out in [".git", "lib/.git", RECORD_FILE] {
            assert!(!to.join(left_out).exists(), "{left_out}");
        }
    }

    #[test]
    fn links_that_lead_out_are_refused() {
        for target in ["/etc/passwd", "../outside", "../from/file", "no/where", "loop"] {
            let (temp, from, to) = folders();
            fs::write(temp.path().join("outside"), "").unwrap();
            fs::write(from.join("file"), "").unwrap();
            symlink(target, from.join("loop")).unwrap();
            let error = copy(&from, &to, BOUNDS).unwrap_err();
            assert!(matches!(error, InstallError::Escapes { .. }), "{target}: {error}");
        }
    }

    #[test]
    fn more_than_the_bounds_is_refused() {
        let (_temp, from, to) = folders();
        for number in 0..10 {
            fs::write(from.join(number.to_string()), "0123456789").unwrap();
        }
        copy(&from, &to, BOUNDS).unwrap();
        fs::write(from.join("0"), "0123456789+").unwrap();
        let error = copy(&from, &from.with_file_name("b"), BOUNDS).unwrap_err();
        assert!(matches!(error, InstallError::TooLarge { limit: 100 }), "{error}");
        fs::write(from.join("more"), "").unwrap();
        let few = Bounds { bytes: 1000, ..BOUNDS };
        let error = copy(&from, &from.with_file_name("c"), few).unwrap_err();
        assert!(matches!(error, InstallError::TooManyFiles { limit: 10 }), "{error}");
    }

    #[test]
    fn what_is_no_file_is_refused() {
        let (_temp, from, to) = folders();
        let _socket = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
        let error = copy(&from, &to, BOUNDS).unwrap_err();
        assert!(matches!(error, InstallError::Special { .. }), "{error}");
    }
}
