//! Files of the workspace, for an agent that reads and writes through its client.

use std::ffi::OsStr;
use std::fs::File;
use std::fs::Metadata;
use std::fs::Permissions;
use std::io::ErrorKind;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use serde_json::json;

use crate::rpc::RpcError;

/// The longest file, in bytes, that is read or written: as JSON it still fits into one message.
pub const MAX_FILE_BYTES: u64 = 50 * 1024 * 1024;

/// Until a file has its content and its own mode, it is nobody else's to read.
const UNFINISHED_MODE: u32 = 0o600;

/// Where `path` leads, if that is inside of `root`, which has no links. What does not exist yet is looked at
/// from the nearest folder that does.
pub fn resolve(root: &Path, path: &Path) -> Result<PathBuf, RpcError> {
    if !path.is_absolute() {
        let message = format!("{} is not an absolute path", path.display());
        return Err(RpcError::invalid_params(message));
    }
    let refused = |why: &dyn std::fmt::Display| {
        RpcError::invalid_params(format!("{} cannot be used: {why}", path.display()))
    };
    // Without a slash at the end, which would hide that the last part is a link.
    let tidy: PathBuf = path.components().collect();
    let mut existing = tidy.as_path();
    let mut missing: Vec<&OsStr> = Vec::new();
    let real = loop {
        match std::fs::canonicalize(existing) {
            Ok(real) => break real,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(refused(&error)),
        }
        if std::fs::symlink_metadata(existing).is_ok() {
            return Err(refused(&"it leads through a link to something that does not exist"));
        }
        let (Some(name), Some(parent)) = (existing.file_name(), existing.parent()) else {
            // Nobody can say what is above a folder that does not exist.
            return Err(refused(&"it leads through a folder that does not exist"));
        };
        missing.push(name);
        existing = parent;
    };
    let real = missing.into_iter().rev().fold(real, |real, name| real.join(name));
    if real.starts_with(root) {
        Ok(real)
    } else {
        Err(refused(&format!("it is outside of {}", root.display())))
    }
}

/// The text of a file, or of some of its lines, as they end in the file.
pub fn read(path: &Path, line: Option<u32>, limit: Option<u32>) -> Result<String, RpcError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => not_found(path),
        _ => RpcError::internal(format!("{} cannot be read: {error}", path.display())),
    };
    let file = open(path, File::options().read(true)).map_err(failed)?;
    let metadata = check_place(&file, path)?;
    if metadata.len() > MAX_FILE_BYTES {
        return Err(too_long(path));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // It may be growing.
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(too_long(path));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| RpcError::internal(format!("{} is not UTF-8 text", path.display())))?;
    if line.is_none() && limit.is_none() {
        return Ok(text);
    }
    let skipped = line.unwrap_or(1).saturating_sub(1) as usize;
    let wanted = limit.map_or(usize::MAX, |limit| limit as usize);
    Ok(text.split_inclusive('\n').skip(skipped).take(wanted).collect())
}

/// Gives a file this text; the folders it needs are made. Whoever reads it meanwhile gets the old text or the
/// new one, unless the file can only be changed in place.
pub fn write(path: &Path, content: &str) -> Result<(), RpcError> {
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(too_long(path));
    }
    let failed = |error: std::io::Error| {
        RpcError::internal(format!("{} cannot be written: {error}", path.display()))
    };
    let Some(folder) = path.parent() else { return Err(no_file(path)) };
    std::fs::create_dir_all(folder).map_err(failed)?;
    let old = match open(path, File::options().write(true)) {
        Ok(file) => {
            let metadata = check_place(&file, path)?;
            Some((file, metadata))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failed(error)),
    };
    if replace(path, content, old.as_ref().map(|(_, metadata)| metadata))? {
        return Ok(());
    }
    let Some((mut file, _)) = old else {
        return Err(failed(ErrorKind::PermissionDenied.into()));
    };
    file.write_all(content.as_bytes()).map_err(failed)?;
    file.set_len(content.len() as u64).map_err(failed)
}

/// Puts a new file into the place of the old one, if there is one. `false`: the folder takes no new file, or the
/// old one would lose its owner or another of its names. Then nothing has changed.
fn replace(path: &Path, content: &str, old: Option<&Metadata>) -> Result<bool, RpcError> {
    if old.is_some_and(|old| old.nlink() > 1) {
        return Ok(false);
    }
    let failed = |error: std::io::Error| {
        RpcError::internal(format!("{} cannot be written: {error}", path.display()))
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A name can be as long as the system allows, with nothing to spare.
    let name: String = name.chars().take(32).collect();
    let beside = path.with_file_name(format!(".{name}.{}.new", uuid::Uuid::new_v4().simple()));
    let mut options = File::options();
    options.write(true).create_new(true);
    if old.is_some() {
        options.mode(UNFINISHED_MODE);
    }
    let mut file = match open(&beside, &mut options) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return Ok(false),
        Err(error) => return Err(failed(error)),
    };
    let mut fill = || -> Result<bool, RpcError> {
        let new = check_place(&file, &beside)?;
        if let Some(old) = old {
            if (old.uid(), old.gid()) != (new.uid(), new.gid()) {
                return Ok(false);
            }
            file.write_all(content.as_bytes()).map_err(failed)?;
            file.set_permissions(Permissions::from_mode(old.mode() & 0o7777)).map_err(failed)?;
        } else {
            file.write_all(content.as_bytes()).map_err(failed)?;
        }
        std::fs::rename(&beside, path).map_err(failed)?;
        Ok(true)
    };
    let replaced = fill();
    if !matches!(replaced, Ok(true)) {
        // Half a file is of no use; that it cannot be removed either changes nothing.
        let _ = std::fs::remove_file(&beside);
    }
    replaced
}

/// Opens a file where it is, not where a link leads, and without waiting for somebody at the other end of it.
fn open(path: &Path, options: &mut std::fs::OpenOptions) -> std::io::Result<File> {
    options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

/// Checks that what was opened is a file, and that it is at `path`, with no link on the way: one may have
/// been put there since the path was looked at.
fn check_place(file: &File, path: &Path) -> Result<Metadata, RpcError> {
    let failed = |error: std::io::Error| {
        RpcError::internal(format!("{} cannot be used: {error}", path.display()))
    };
    let opened = file.metadata().map_err(failed)?;
    if !opened.is_file() {
        return Err(no_file(path));
    }
    let there = std::fs::symlink_metadata(path).map_err(failed)?;
    let moved = std::fs::canonicalize(path).map_err(failed)? != path;
    if moved || (there.dev(), there.ino()) != (opened.dev(), opened.ino()) {
        let message = format!("{} is not where it was a moment ago", path.display());
        return Err(RpcError::invalid_params(message));
    }
    Ok(opened)
}

/// There are agents that go by the words and not by the code.
fn not_found(path: &Path) -> RpcError {
    let path = path.display().to_string();
    RpcError {
        code: RpcError::RESOURCE_NOT_FOUND,
        message: format!("Resource not found: {path} does not exist"),
        data: Some(json!({ "uri": path })),
    }
}

fn no_file(path: &Path) -> RpcError {
    RpcError::invalid_params(format!("{} is not a file", path.display()))
}

fn too_long(path: &Path) -> RpcError {
    let most = MAX_FILE_BYTES / (1024 * 1024);
    RpcError::internal(format!("{} is longer than {most} MiB", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder, as it is called without links.
    fn workspace() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("root");
        std::fs::create_dir(&root).unwrap();
        (temp, root)
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_path_is_followed_before_it_is_compared_with_the_root() {
        let (temp, root) = workspace();
        let outside = temp.path().canonicalize().unwrap().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), "").unwrap();
        std::fs::create_dir(root.join("sub")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        symlink(root.join("sub"), root.join("in")).unwrap();
        symlink(&outside, root.join("out")).unwrap();
        symlink(outside.join("file"), root.join("out-file")).unwrap();
        symlink(outside.join("new"), root.join("nowhere")).unwrap();
        // As long as the root's name, but another folder.
        std::fs::create_dir(temp.path().join("root-too")).unwrap();

        for (path, expected) in [
            ("file", "file"),
            ("sub/../file", "file"),
            ("in/new", "sub/new"),
            ("in/../file", "file"),
            ("a/b/c", "a/b/c"),
            ("sub/.", "sub"),
            ("./sub//new/", "sub/new"),
            ("", ""),
        ] {
            let found = resolve(&root, &root.join(path)).unwrap();
            assert_eq!(found, root.join(expected).components().collect::<PathBuf>(), "{path}");
        }
        for path in [
            "..",
            "../outside/file",
            "../root-too/x",
            "out",
            "out/",
            "out/file",
            "out/new/file",
            "out-file",
            "nowhere",
            "nowhere/",
            "nowhere/x",
            "missing/../../outside/file",
            "missing/../file",
            "file/x",
            "sub/../../outside/new",
        ] {
            let error = resolve(&root, &root.join(path)).unwrap_err();
            assert_eq!(error.code, RpcError::INVALID_PARAMS, "{path}");
        }
        assert!(resolve(&root, Path::new("file")).is_err());
        assert!(resolve(&root, Path::new("/")).is_err());
        assert!(resolve(&root, Path::new("/nul\0byte")).is_err());
        // From outside, by a link that leads in.
        symlink(&root, outside.join("back")).unwrap();
        assert_eq!(resolve(&root, &outside.join("back/file")).unwrap(), root.join("file"));
    }

    #[test]
    fn the_wanted_lines_are_read_as_they_are() {
        let (_temp, root) = workspace();
        let path = root.join("file");
        std::fs::write(&path, "one\r\ntwo\n\nfour").unwrap();
        for (line, limit, expected) in [
            (None, None, "one\r\ntwo\n\nfour"),
            (Some(1), None, "one\r\ntwo\n\nfour"),
            (Some(0), Some(1), "one\r\n"),
            (Some(2), Some(2), "two\n\n"),
            (Some(4), Some(10), "four"),
            (None, Some(1), "one\r\n"),
            (Some(2), None, "two\n\nfour"),
            (Some(5), None, ""),
            (Some(u32::MAX), Some(u32::MAX), ""),
            (None, Some(0), ""),
        ] {
            assert_eq!(read(&path, line, limit).unwrap(), expected, "{line:?} {limit:?}");
        }
    }

    #[test]
    fn a_missing_file_is_named_in_the_code_and_the_words_agents_look_for() {
        let (_temp, root) = workspace();
        let path = root.join("missing");
        let error = read(&path, None, None).unwrap_err();
        assert_eq!(error.code, RpcError::RESOURCE_NOT_FOUND);
        assert!(error.message.contains("Resource not found"), "{error}");
        assert!(error.message.contains(path.to_str().unwrap()), "{error}");
        assert_eq!(error.data, Some(json!({ "uri": path })));
    }

    #[test]
    fn what_is_no_text_file_is_not_read() {
        let (_temp, root) = workspace();
        std::fs::write(root.join("binary"), b"a\xFF\0").unwrap();
        let error = read(&root.join("binary"), None, None).unwrap_err();
        assert!(error.message.contains("is not UTF-8 text"), "{error}");
        assert!(read(&root, None, None).unwrap_err().message.contains("is not a file"));
        // Nobody is at its other end, and nobody waits for that.
        let pipe = root.join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(read(&pipe, None, None).unwrap_err().message.contains("is not a file"));
        write(&pipe, "x").unwrap_err();
        write(&root, "x").unwrap_err();
        symlink("binary", root.join("link")).unwrap();
        read(&root.join("link"), None, None).unwrap_err();
        write(&root.join("link"), "x").unwrap_err();
    }

    #[test]
    fn a_file_over_the_limit_is_neither_read_nor_written() {
        let (_temp, root) = workspace();
        let path = root.join("file");
        File::create(&path).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let error = read(&path, Some(1), Some(1)).unwrap_err();
        assert!(error.message.contains("is longer than 50 MiB"), "{error}");
        let content = "x".repeat(MAX_FILE_BYTES as usize + 1);
        let error = write(&root.join("new"), &content).unwrap_err();
        assert!(error.message.contains("is longer than 50 MiB"), "{error}");
        assert_eq!(names(&root), ["file"]);
    }

    #[test]
    fn a_written_file_replaces_the_old_one_and_keeps_its_mode() {
        let (_temp, root) = workspace();
        let path = root.join("script.sh");
        std::fs::write(&path, "old and longer").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o751)).unwrap();
        let mut reader = File::open(&path).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "new");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o751);
        // Whoever had it open reads on in the old one.
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(seen, "old and longer");
        assert_eq!(names(&root), ["script.sh"]);
    }

    #[test]
    fn a_new_file_gets_its_folders_and_the_usual_mode() {
        let (_temp, root) = workspace();
        let long = "n".repeat(255);
        let path = root.join("a/b").join(&long);
        write(&path, "x").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
        let usual = root.join("usual");
        std::fs::write(&usual, "").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&path), mode(&usual));
        assert_eq!(names(&root.join("a/b")), [long]);
        write(&root.join("usual/x"), "").unwrap_err();
    }

    #[test]
    fn a_file_with_two_names_is_changed_under_both() {
        let (_temp, root) = workspace();
        let (path, other) = (root.join("one"), root.join("two"));
        std::fs::write(&path, "old and longer").unwrap();
        std::fs::hard_link(&path, &other).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "new");
        assert_eq!(names(&root), ["one", "two"]);
    }

    #[test]
    fn a_file_that_was_opened_through_a_link_is_noticed() {
        let (temp, root) = workspace();
        let outside = temp.path().canonicalize().unwrap().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::fs::write(outside.join("file"), "secret").unwrap();
        symlink(&outside, root.join("folder")).unwrap();
        let path = root.join("folder/file");
        let error = read(&path, None, None).unwrap_err();
        assert!(error.message.contains("is not where it was"), "{error}");
        write(&path, "x").unwrap_err();
        write(&root.join("folder/new"), "x").unwrap_err();
        assert_eq!(names(&outside), ["file"]);
        assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "secret");
        // And one that was put back in time.
        let file = File::open(&path).unwrap();
        std::fs::remove_file(root.join("folder")).unwrap();
        std::fs::create_dir(root.join("folder")).unwrap();
        std::fs::write(&path, "harmless").unwrap();
        assert!(check_place(&file, &path).is_err());
    }
}
