//! Installing extensions into a folder of extensions, and taking them away again.
//!
//! Everything is made ready in a hidden folder and gets its name in one step: whatever goes wrong, the
//! folder is as it was.

mod copy;
mod error;
mod source;

use std::fs;
use std::path::Component;
use std::path::Path;
use std::path::PathBuf;
use std::time::SystemTime;

use serde::Deserialize;
use serde::Serialize;

pub use error::InstallError;
pub use source::Source;

use crate::discovery::ENTRY_FILES;
use crate::discovery::Found;
use crate::discovery::Scope;
use crate::extension::hash;
use crate::log_files::KEPT_LOG_FILES;
use crate::log_files::LogFiles;
use crate::scaffold::check_name;
use crate::staging;
use crate::staging::Staging;
use crate::trust;
use copy::Bounds;

/// The most files, folders and links of one extension. One with large packages has a few thousand; more is
/// a path that was not meant, such as a home folder.
pub const MAX_INSTALL_FILES: usize = 15_000;

/// The most bytes of one extension, for the same reason. The largest packages have some tens of megabytes.
pub const MAX_INSTALL_BYTES: u64 = 256 * 1024 * 1024;

/// The file in an installed extension that says where it came from.
pub const RECORD_FILE: &str = ".tenon-install.json";

const BOUNDS: Bounds = Bounds { files: MAX_INSTALL_FILES, bytes: MAX_INSTALL_BYTES };

/// Where an installed extension came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InstallRecord {
    /// A path, or the address of a git repository without passwords.
    pub source: String,
    /// The extension's folder inside the source, where it is not the source itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The branch, tag or commit that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// The commit that was installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// [`trust::content_hash`] of the files as they were installed, without this record.
    pub hash: String,
    /// When, in ISO 8601.
    pub installed_at: String,
}

/// An extension that was just installed.
#[derive(Debug, Clone)]
pub struct Installed {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether another of that name was replaced.
    pub replaced: bool,
    /// The hash of what was put there, with the record; what is in the folder may have been changed since.
    pub hash: String,
    /// Where it came from.
    pub record: InstallRecord,
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> InstallError {
    let path = path.to_owned();
    |source| InstallError::Io { path, source }
}

/// What is to be installed, and where.
#[derive(Clone, Copy)]
pub struct Wanted<'a> {
    /// Where it comes from.
    pub source: &'a Source,
    /// The extension's folder within the source; found out if it is not given.
    pub inside: Option<&'a Path>,
    /// What it is to be called; found out if it is not given.
    pub name: Option<&'a str>,
    /// The folder of extensions that it is put into.
    pub into: &'a Path,
    /// Whether an extension of that name is replaced; else it is an error.
    pub replace: bool,
    /// Whether somebody wants the program to end. It is asked again and again.
    pub is_stopped: &'a dyn Fn() -> bool,
}

/// An extension that is about to get its place.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its files, where they were made ready.
    pub files: &'a Path,
    /// Its name.
    pub name: &'a str,
    /// The folder that it will have.
    pub folder: &'a Path,
    /// Whether the one that it replaces came from the same place. Else it is another extension, to which
    /// nothing was granted yet.
    pub same_source: bool,
}

/// Installs an extension. `validate` looks at it before it gets its place, and may refuse it.
pub fn install(
    wanted: &Wanted<'_>,
    validate: &mut dyn FnMut(&Candidate<'_>) -> Result<(), String>,
) -> Result<Installed, InstallError> {
    install_within(BOUNDS, wanted, validate)
}

fn install_within(
    bounds: Bounds,
    wanted: &Wanted<'_>,
    validate: &mut dyn FnMut(&Candidate<'_>) -> Result<(), String>,
) -> Result<Installed, InstallError> {
    let Wanted { source, into, is_stopped, .. } = *wanted;
    if let Some(name) = wanted.name {
        // Before anything is fetched.
        check_name(name)?;
    }
    if is_stopped() {
        return Err(InstallError::Interrupted);
    }
    staging::sweep(into, SystemTime::now());
    let staging = Staging::new(into, "install").map_err(io(into))?;
    let (root, reference, commit) = match source {
        Source::Folder(folder) => (folder.clone(), None, None),
        Source::Git { url, reference } => {
            let folder = staging.path().join("repository");
            let commit = source::check_out(url, reference.as_deref(), &folder, is_stopped)?;
            (folder, reference.clone(), Some(commit))
        }
    };
    let found = locate(source, &root, wanted.inside)?;
    let name = match wanted.name {
        Some(name) => name.to_owned(),
        None if found == root => source.name().unwrap_or_default(),
        None => found.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    check_name(&name)?;
    let folder = into.join(&name);
    let exists = fs::symlink_metadata(&folder).is_ok();
    if exists && !wanted.replace {
        return Err(InstallError::Exists { path: folder });
    }
    let path = path_inside(&root, &found);
    let is_same = |old: InstallRecord| old.source == source.to_string() && old.path == path;
    let same_source = record(&folder).is_some_and(is_same);
    refuse_into_itself(&found, staging.path())?;
    // One level down: a repository may have any name.
    let ready = staging.path().join("ready");
    fs::create_dir(&ready).map_err(io(&ready))?;
    let ready = ready.join(&name);
    copy::copy(&found, &ready, bounds)?;
    let candidate = Candidate { files: &ready, name: &name, folder: &folder, same_source };
    let valid = validate(&candidate);
    if is_stopped() {
        return Err(InstallError::Interrupted);
    }
    valid.map_err(|why| InstallError::Refused { why })?;
    let record = InstallRecord {
        source: source.to_string(),
        path,
        reference,
        commit,
        hash: trust::content_hash(&ready).map_err(io(&ready))?,
        installed_at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    };
    write_record(&ready, &record)?;
    let hash = trust::content_hash(&ready).map_err(io(&ready))?;
    let aside = staging.path().join("old");
    put_in_place(&ready, &folder, exists.then_some(aside.as_path()))?;
    Ok(Installed { name, folder, replaced: exists, hash, record })
}

/// Gives what is ready its place. What has the place changes over with it in one step, so that one of them
/// is always there; where that cannot be done, it is moved aside, and back if the rest fails.
fn put_in_place(ready: &Path, folder: &Path, aside: Option<&Path>) -> Result<(), InstallError> {
    if let Some(aside) = aside {
        if exchange(ready, folder).is_ok() {
            return Ok(());
        }
        fs::rename(folder, aside).map_err(io(folder))?;
    }
    fs::rename(ready, folder).map_err(|source| {
        if let Some(aside) = aside {
            // Nothing took its place, so there is nothing in the way.
            let _ = fs::rename(aside, folder);
        }
        match source.kind() {
            // Somebody else was quicker.
            std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::NotADirectory => {
                InstallError::Exists { path: folder.to_owned() }
            }
            _ => InstallError::Io { path: folder.to_owned(), source },
        }
    })
}

/// Lets two folders change places in one step. Not every file system can do that.
#[cfg(target_os = "linux")]
fn exchange(one: &Path, other: &Path) -> std::io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let one = std::ffi::CString::new(one.as_os_str().as_bytes())?;
    let other = std::ffi::CString::new(other.as_os_str().as_bytes())?;
    let here = libc::AT_FDCWD;
    // SAFETY: both texts end with a zero and outlive the call, which keeps nothing of them.
    let done =
        unsafe { libc::renameat2(here, one.as_ptr(), here, other.as_ptr(), libc::RENAME_EXCHANGE) };
    if done == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_one: &Path, _other: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Where in its source an extension is, as it is recorded; `None` if it is the source.
fn path_inside(root: &Path, found: &Path) -> Option<String> {
    let inside = found.strip_prefix(root).ok()?.components();
    // However it was written: `./a` is `a`.
    let inside: PathBuf = inside.filter(|part| matches!(part, Component::Normal(_))).collect();
    (!inside.as_os_str().is_empty()).then(|| inside.to_string_lossy().into_owned())
}

/// The extension's folder in a source.
fn locate(source: &Source, root: &Path, inside: Option<&Path>) -> Result<PathBuf, InstallError> {
    let Some(inside) = inside else { return find_only(source, root) };
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    let folder = root.join(inside);
    if !inside.components().all(plain) || !is_below(root, &folder) || !folder.is_dir() {
        return Err(InstallError::NotInside { path: inside.to_owned() });
    }
    if has_entry(&folder) {
        Ok(folder)
    } else {
        Err(InstallError::NoEntry { place: inside.display().to_string() })
    }
}

/// The source itself, or the one extension in it.
fn find_only(source: &Source, root: &Path) -> Result<PathBuf, InstallError> {
    if has_entry(root) {
        return Ok(root.to_owned());
    }
    let mut found = extensions_in(&root.join(".github").join("extensions"));
    found.extend(extensions_in(root));
    found.retain(|folder| is_below(root, folder));
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(InstallError::NoEntry { place: source.to_string() }),
        several => {
            let relative =
                |folder: &PathBuf| folder.strip_prefix(root).unwrap_or(folder).to_owned();
            let folders = several.iter().map(relative).collect();
            Err(InstallError::Several { place: source.to_string(), folders })
        }
    }
}

/// The folders in a folder that are extensions, by name.
fn extensions_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| has_entry(path)).collect();
    found.sort();
    found
}

fn has_entry(folder: &Path) -> bool {
    ENTRY_FILES.iter().any(|name| folder.join(name).is_file())
}

/// Whether a path is below another, after links were followed.
fn is_below(root: &Path, path: &Path) -> bool {
    match (fs::canonicalize(root), fs::canonicalize(path)) {
        (Ok(root), Ok(path)) => path.starts_with(root),
        _ => false,
    }
}

fn refuse_into_itself(found: &Path, staging: &Path) -> Result<(), InstallError> {
    if is_below(found, staging) {
        return Err(InstallError::IntoItself { path: found.to_owned() });
    }
    Ok(())
}

fn write_record(folder: &Path, record: &InstallRecord) -> Result<(), InstallError> {
    let path = folder.join(RECORD_FILE);
    let text = serde_json::to_string_pretty(record).map_err(|error| io(&path)(error.into()))?;
    fs::write(&path, text + "\n").map_err(io(&path))
}

/// Where an extension came from, if it was installed.
pub fn record(folder: &Path) -> Option<InstallRecord> {
    serde_json::from_slice(&fs::read(folder.join(RECORD_FILE)).ok()?).ok()
}

/// Takes an extension away: out of sight first, so that it is never there by half. Of a link only the link
/// is removed.
pub fn remove(folder: &Path) -> Result<(), InstallError> {
    let data = fs::symlink_metadata(folder).map_err(io(folder))?;
    if data.is_symlink() {
        return fs::remove_file(folder).map_err(io(folder));
    }
    // A mistaken path must not cost somebody their files.
    let is_there = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
    let known = is_there(RECORD_FILE) || ENTRY_FILES.iter().any(|name| is_there(name));
    let (true, Some(parent)) = (known, folder.parent()) else {
        return Err(InstallError::NotAnExtension { path: folder.to_owned() });
    };
    let staging = Staging::new(parent, "removed").map_err(io(parent))?;
    fs::rename(folder, staging.path().join("old")).map_err(io(folder))?;
    let path = staging.path().to_owned();
    staging.delete().map_err(io(&path))
}

/// What an extension has outside of its folder, if it is there: its data, its log and what was put aside of
/// it. Asked before it is removed, for a log may be named after where the folder is. `root` is that of the
/// repository.
pub fn belongings(home: &Path, root: &Path, extension: &Found) -> Vec<PathBuf> {
    let Found { scope, name, folder, .. } = extension;
    let data = home.join("extension-data").join(scope.to_string());
    // Where a session lets them keep it.
    let data = match scope {
        Scope::Project => data.join(&hash(root.as_os_str().as_encoded_bytes())[..16]).join(name),
        _ => data.join(name),
    };
    let log = LogFiles::new(home).file_for(*scope, name, folder);
    let aside = (1..KEPT_LOG_FILES).map(|number| {
        let mut path = log.clone().into_os_string();
        path.push(format!(".{number}"));
        PathBuf::from(path)
    });
    let mut all: Vec<_> = [data, log.clone()].into_iter().chain(aside).collect();
    all.retain(|path| fs::symlink_metadata(path).is_ok());
    all
}

/// Deletes [`belongings`]. Of a link only the link is deleted.
pub fn delete_belongings(belongings: &[PathBuf]) -> Result<(), InstallError> {
    for path in belongings {
        let is_folder = fs::symlink_metadata(path).is_ok_and(|data| data.is_dir());
        let deleted = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
        match deleted {
            // Somebody else has done it.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            deleted => deleted.map_err(io(path))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    const TEXT: &str = "await joinSession();\n";

    struct Place {
        temp: tempfile::TempDir,
        into: PathBuf,
    }

    impl Place {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let into = temp.path().join("home/extensions");
            Self { temp, into }
        }

        fn file(&self, path: &str, text: &str) {
            let path = self.temp.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn folder(&self, path: &str) -> Source {
            Source::Folder(self.temp.path().join(path))
        }

        fn wanted<'a>(&'a self, source: &'a Source) -> Wanted<'a> {
            Wanted {
                source,
                inside: None,
                name: None,
                into: &self.into,
                replace: false,
                is_stopped: &|| false,
            }
        }

        fn install(&self, source: &Source) -> Result<Installed, InstallError> {
            install(&self.wanted(source), &mut |_| Ok(()))
        }

        /// Replaces what is there; whether that was from the same source.
        fn replace(&self, source: &Source) -> bool {
            let mut same = None;
            let mut look = |candidate: &Candidate<'_>| {
                same = Some(candidate.same_source);
                Ok(())
            };
            install(&Wanted { replace: true, ..self.wanted(source) }, &mut look).unwrap();
            same.unwrap()
        }

        fn installed(&self) -> Vec<String> {
            let Ok(entries) = fs::read_dir(&self.into) else { return Vec::new() };
            let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            let mut names: Vec<_> = entries.flatten().map(name).collect();
            names.sort();
            names
        }

        fn git(&self, args: &[&str]) {
            let done = Command::new("git")
                .env("GIT_CONFIG_GLOBAL", "/dev/null")
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
                .args(args)
                .current_dir(self.temp.path().join("repository"))
                .output()
                .unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }

        /// A repository with two commits; the first is tagged `v1`.
        fn repository(&self) -> String {
            self.file("repository/.github/extensions/greet/extension.mjs", "// one\n");
            self.git(&["init", "--quiet"]);
            self.git(&["add", "."]);
            self.git(&["commit", "--quiet", "-m", "one"]);
            self.git(&["tag", "v1"]);
            self.file("repository/.github/extensions/greet/extension.mjs", "// two\n");
            self.git(&["commit", "--quiet", "-a", "-m", "two"]);
            format!("file://{}", self.temp.path().join("repository").display())
        }
    }

    #[test]
    fn a_folder_is_copied_with_a_record_of_where_it_came_from() {
        let place = Place::new();
        place.file("src/greet/extension.mjs", TEXT);
        place.file("src/greet/lib/a.mjs", "");
        let done = place.install(&place.folder("src/greet")).unwrap();
        assert_eq!((done.name.as_str(), done.replaced), ("greet", false));
        assert_eq!(fs::read_to_string(done.folder.join("extension.mjs")).unwrap(), TEXT);
        assert!(done.folder.join("lib/a.mjs").is_file());
        let kept = record(&done.folder).unwrap();
        assert_eq!(kept, done.record);
        assert!(kept.source.ends_with("src/greet") && kept.commit.is_none(), "{kept:?}");
        assert_eq!(place.installed(), ["greet"]);
    }

    #[test]
    fn a_repository_gives_its_newest_files_or_those_of_a_reference() {
        let place = Place::new();
        let url = place.repository();
        let done = place.install(&Source::parse(&url).unwrap()).unwrap();
        assert_eq!(done.name, "greet");
        assert_eq!(fs::read_to_string(done.folder.join("extension.mjs")).unwrap(), "// two\n");
        let newest = done.record.commit.unwrap();
        assert_eq!(newest.len(), 40);
        for reference in ["v1", &newest] {
            let source = Source::parse(&format!("{url}#{reference}")).unwrap();
            let name = format!("at-{}", &reference[..2]);
            let wanted = Wanted { name: Some(&name), ..place.wanted(&source) };
            let done = install(&wanted, &mut |_| Ok(())).unwrap();
            let text = fs::read_to_string(done.folder.join("extension.mjs")).unwrap();
            assert_eq!(text == "// one\n", reference == "v1", "{text}");
            assert_eq!(done.record.reference.as_deref(), Some(reference));
        }
        assert!(place.installed().iter().all(|name| !name.starts_with('.')));
    }

    #[test]
    fn what_git_says_is_passed_on_and_nothing_is_left() {
        let place = Place::new();
        let url = place.repository();
        let error = place.install(&Source::parse(&format!("{url}#nope")).unwrap()).unwrap_err();
        assert!(error.to_string().contains("nope"), "{error}");
        let error = place.install(&Source::parse("file:///no/where").unwrap()).unwrap_err();
        assert!(matches!(error, InstallError::Git { .. }), "{error}");
        assert_eq!(place.installed(), [""; 0]);
    }

    #[test]
    fn the_only_extension_is_found_and_several_are_listed() {
        let place = Place::new();
        place.file("src/one/extension.ts", "");
        place.file("src/docs/readme.md", "");
        assert_eq!(place.install(&place.folder("src")).unwrap().name, "one");
        place.file("src/.github/extensions/two/extension.cjs", "");
        let error = place.install(&place.folder("src")).unwrap_err().to_string();
        assert!(error.contains(".github/extensions/two, one"), "{error}");
        let two = Path::new("./.github/extensions/two");
        let source = place.folder("src");
        let wanted = Wanted { inside: Some(two), name: Some("second"), ..place.wanted(&source) };
        let done = install(&wanted, &mut |_| Ok(())).unwrap();
        assert_eq!(done.name, "second");
        assert_eq!(done.record.path.as_deref(), Some(".github/extensions/two"));
        let error = place.install(&place.folder("src/docs")).unwrap_err().to_string();
        assert!(error.contains("extension.mjs"), "{error}");
    }

    #[test]
    fn a_path_inside_the_source_cannot_leave_it() {
        let place = Place::new();
        place.file("src/one/extension.mjs", "");
        place.file("other/extension.mjs", "");
        symlink(place.temp.path().join("other"), place.temp.path().join("src/link")).unwrap();
        let other = place.temp.path().join("other");
        for path in [Path::new("../other"), Path::new("link"), Path::new("none"), &other] {
            let source = place.folder("src");
            let wanted = Wanted { inside: Some(path), ..place.wanted(&source) };
            let error = install(&wanted, &mut |_| Ok(())).unwrap_err();
            assert!(matches!(error, InstallError::NotInside { .. }), "{error}");
        }
        // Nor is an extension found there.
        assert_eq!(place.install(&place.folder("src")).unwrap().name, "one");
    }

    #[test]
    fn a_link_that_leads_out_refuses_the_whole_and_leaves_nothing() {
        let place = Place::new();
        place.file("src/a/extension.mjs", "");
        symlink("/etc/passwd", place.temp.path().join("src/a/secrets")).unwrap();
        let error = place.install(&place.folder("src/a")).unwrap_err();
        assert!(error.to_string().contains("/etc/passwd"), "{error}");
        assert_eq!(place.installed(), [""; 0]);
    }

    #[test]
    fn what_is_refused_leaves_nothing_and_keeps_what_was_there() {
        let place = Place::new();
        place.file("src/a/extension.mjs", "new");
        place.file("home/extensions/a/extension.mjs", "old");
        let source = place.folder("src/a");
        let mut seen = String::new();
        let mut refuse = |candidate: &Candidate<'_>| {
            seen = candidate.files.display().to_string();
            Err("it does not load".to_owned())
        };
        let wanted = Wanted { replace: true, ..place.wanted(&source) };
        let error = install(&wanted, &mut refuse).unwrap_err();
        assert!(error.to_string().contains("it does not load"), "{error}");
        assert!(seen.ends_with("/a"), "{seen}");
        assert_eq!(place.installed(), ["a"]);
        assert_eq!(fs::read_to_string(place.into.join("a/extension.mjs")).unwrap(), "old");
    }

    #[test]
    fn a_name_that_is_taken_is_replaced_only_on_request() {
        let place = Place::new();
        place.file("src/a/extension.mjs", "new");
        place.file("home/extensions/a/extension.mjs", "old");
        place.file("home/extensions/a/more.mjs", "");
        let error = place.install(&place.folder("src/a")).unwrap_err();
        assert!(matches!(error, InstallError::Exists { .. }), "{error}");
        let source = place.folder("src/a");
        let wanted = Wanted { replace: true, ..place.wanted(&source) };
        let done = install(&wanted, &mut |_| Ok(())).unwrap();
        assert!(done.replaced);
        assert_eq!(fs::read_to_string(done.folder.join("extension.mjs")).unwrap(), "new");
        assert!(!done.folder.join("more.mjs").exists());
        assert_eq!(place.installed(), ["a"]);
    }

    #[test]
    fn what_cannot_be_put_in_place_leaves_the_old_one_there() {
        let place = Place::new();
        place.file("home/extensions/a/extension.mjs", "old");
        let aside = place.temp.path().join("aside");
        let missing = place.temp.path().join("missing");
        put_in_place(&missing, &place.into.join("a"), Some(&aside)).unwrap_err();
        assert_eq!(fs::read_to_string(place.into.join("a/extension.mjs")).unwrap(), "old");
        assert!(!aside.exists());
    }

    #[test]
    fn one_that_is_replaced_changes_places_in_one_step() {
        let place = Place::new();
        place.file("home/extensions/a/extension.mjs", "old");
        place.file("ready/extension.mjs", "new");
        let (ready, aside) = (place.temp.path().join("ready"), place.temp.path().join("aside"));
        let folder = place.into.join("a");
        put_in_place(&ready, &folder, Some(&aside)).unwrap();
        assert_eq!(fs::read_to_string(folder.join("extension.mjs")).unwrap(), "new");
        let can_exchange = exchange(&ready, &folder).is_ok();
        if can_exchange {
            // It was not moved aside in between, and is back now.
            assert!(!aside.exists());
            assert_eq!(fs::read_to_string(folder.join("extension.mjs")).unwrap(), "old");
        }
        // Nor is a link followed.
        let link = place.into.join("link");
        symlink(place.temp.path(), &link).unwrap();
        put_in_place(&folder, &link, Some(&place.temp.path().join("another"))).unwrap();
        assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn it_is_told_whether_the_old_one_came_from_the_same_place() {
        let place = Place::new();
        place.file("src/a/extension.mjs", "");
        place.file("other/a/extension.mjs", "");
        place.file("home/extensions/a/extension.mjs", "written by hand");
        let (one, other) = (place.folder("src/a"), place.folder("other/a"));
        assert!(!place.replace(&one));
        assert!(place.replace(&one));
        assert!(!place.replace(&other));
        assert!(place.replace(&other));
        // The same extension, but as one of several in a source.
        assert!(!place.replace(&place.folder("other")));
        remove(&place.into.join("a")).unwrap();
        assert!(!place.replace(&place.folder("other")));
    }

    #[test]
    fn what_is_interrupted_leaves_nothing_and_keeps_what_was_there() {
        let place = Place::new();
        place.file("src/a/extension.mjs", "new");
        place.file("home/extensions/a/extension.mjs", "old");
        let source = place.folder("src/a");
        let stopped = Cell::new(true);
        let is_stopped = || stopped.get();
        let wanted = Wanted { replace: true, is_stopped: &is_stopped, ..place.wanted(&source) };
        let error = install(&wanted, &mut |_| panic!("it was begun")).unwrap_err();
        assert!(matches!(error, InstallError::Interrupted), "{error}");
        for valid in [Ok(()), Err("interrupted".to_owned())] {
            stopped.set(false);
            let mut stop = |_: &Candidate<'_>| {
                stopped.set(true);
                valid.clone()
            };
            let error = install(&wanted, &mut stop).unwrap_err();
            assert!(matches!(error, InstallError::Interrupted), "{error}");
        }
        assert_eq!(place.installed(), ["a"]);
        assert_eq!(fs::read_to_string(place.into.join("a/extension.mjs")).unwrap(), "old");
        // Nor is anything left of a fetch.
        let source = Source::parse(&place.repository()).unwrap();
        let asked = Cell::new(0);
        let is_stopped = || asked.replace(asked.get() + 1) > 0;
        let wanted = Wanted { is_stopped: &is_stopped, ..place.wanted(&source) };
        let error = install(&wanted, &mut |_| Ok(())).unwrap_err();
        assert!(matches!(error, InstallError::Interrupted), "{error}");
        assert_eq!(place.installed(), ["a"]);
    }

    #[test]
    fn more_than_the_limits_is_refused_and_leaves_nothing() {
        let place = Place::new();
        place.file("src/a/extension.mjs", "0123456789");
        let source = place.folder("src/a");
        let install = |bounds| install_within(bounds, &place.wanted(&source), &mut |_| Ok(()));
        let error = install(Bounds { files: 0, bytes: 100 }).unwrap_err();
        assert!(error.to_string().contains("more than 0 files"), "{error}");
        let error = install(Bounds { files: 9, bytes: 9 }).unwrap_err();
        assert!(matches!(error, InstallError::TooLarge { limit: 9 }), "{error}");
        assert_eq!(place.installed(), [""; 0]);
        install(Bounds { files: 1, bytes: 10 }).unwrap();
    }

    #[test]
    fn an_extension_is_not_copied_into_itself() {
        let place = Place::new();
        place.file("home/extension.mjs", "");
        let error = place.install(&place.folder("home")).unwrap_err();
        assert!(matches!(error, InstallError::IntoItself { .. }), "{error}");
    }

    #[test]
    fn a_name_that_will_not_do_is_refused() {
        let place = Place::new();
        place.file("src/my.ext/extension.mjs", "");
        let error = place.install(&place.folder("src/my.ext")).unwrap_err();
        assert!(error.to_string().contains("another name can be given"), "{error}");
        assert_eq!(place.installed(), [""; 0]);
    }

    #[test]
    fn an_extension_is_removed_whole_and_of_a_link_only_the_link() {
        let place = Place::new();
        place.file("home/extensions/a/extension.mjs", "");
        place.file("src/b/extension.mjs", "");
        place.file("home/extensions/c/data.txt", "");
        symlink(place.temp.path().join("src/b"), place.into.join("b")).unwrap();
        remove(&place.into.join("a")).unwrap();
        remove(&place.into.join("b")).unwrap();
        let error = remove(&place.into.join("c")).unwrap_err();
        assert!(matches!(error, InstallError::NotAnExtension { .. }), "{error}");
        remove(&place.into.join("none")).unwrap_err();
        assert_eq!(place.installed(), ["c"]);
        assert!(place.temp.path().join("src/b/extension.mjs").exists());
    }
    #[test]
    fn belongings_are_those_of_one_extension_and_links_in_them_are_not_followed() {
        let place = Place::new();
        let home = place.temp.path().join("home");
        let extension = |scope, name: &str| Found {
            scope,
            name: name.to_owned(),
            folder: place.into.join(name),
            entry: Err(String::new()),
            shadowed_by: None,
        };
        place.file("home/extension-data/user/a/deep/data", "");
        place.file("home/extension-data/user/ab/data", "");
        place.file("kept/data", "");
        symlink(place.temp.path().join("kept"), home.join("extension-data/user/c")).unwrap();
        for name in ["user-a.log", "user-a.log.1", "user-a.log.2", "user-a.log-b.log"] {
            place.file(&format!("home/logs/{name}"), "");
        }
        let of = |scope, name: &str| belongings(&home, &home, &extension(scope, name));
        let all = of(Scope::User, "a");
        let relative: Vec<_> = all.iter().map(|path| path.strip_prefix(&home).unwrap()).collect();
        let expected =
            ["extension-data/user/a", "logs/user-a.log", "logs/user-a.log.1", "logs/user-a.log.2"];
        assert_eq!(relative, expected.map(Path::new));
        assert!(of(Scope::Project, "a").is_empty());
        delete_belongings(&all).unwrap();
        delete_belongings(&all).unwrap();
        delete_belongings(&of(Scope::User, "c")).unwrap();
        assert!(of(Scope::User, "a").is_empty() && of(Scope::User, "c").is_empty());
        assert!(place.temp.path().join("kept/data").exists());
        assert!(home.join("extension-data/user/ab/data").exists());
        assert!(home.join("logs/user-a.log-b.log").exists());
    }
}
