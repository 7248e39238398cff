//! Installing extensions into a folder of extensions, and taking them away again.
//!
//! Everything is made ready in a hidden folder and gets its name in one step: whatever goes wrong, the
//! folder is as it was.

mod copy;
mod error;
mod source;
pub(crate) mod staging;

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
use crate::scaffold::check_name;
use crate::trust;
use copy::Bounds;
use staging::Staging;

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
    /// Where it came from.
    pub record: InstallRecord,
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> InstallError {
    let path = path.to_owned();
    |source| InstallError::Io { path, source }
}

/// Installs an extension into `into`, a folder of extensions.
///
/// `inside` is the extension's folder within the source, `name` what it is to be called; both are found out
/// if they are not given. With `replace` an extension of that name is replaced, else it is an error.
/// `validate` looks at the files before they get their place, and may refuse them.
pub fn install(
    source: &Source,
    inside: Option<&Path>,
    name: Option<&str>,
    into: &Path,
    replace: bool,
    validate: &mut dyn FnMut(&Path) -> Result<(), String>,
) -> Result<Installed, InstallError> {
    install_within(BOUNDS, source, inside, name, into, replace, validate)
}

fn install_within(
    bounds: Bounds,
    source: &Source,
    inside: Option<&Path>,
    name: Option<&str>,
    into: &Path,
    replace: bool,
    validate: &mut dyn FnMut(&Path) -> Result<(), String>,
) -> Result<Installed, InstallError> {
    if let Some(name) = name {
        // Before anything is fetched.
        check_name(name)?;
    }
    staging::sweep(into, SystemTime::now());
    let staging = Staging::new(into, "install").map_err(io(into))?;
    let (root, reference, commit) = match source {
        Source::Folder(folder) => (folder.clone(), None, None),
        Source::Git { url, reference } => {
            let folder = staging.path().join("repository");
            let commit = source::check_out(url, reference.as_deref(), &folder)?;
            (folder, reference.clone(), Some(commit))
        }
    };
    let found = locate(source, &root, inside)?;
    let name = match name {
        Some(name) => name.to_owned(),
        None if found == root => source.name().unwrap_or_default(),
        None => found.file_name().unwrap_or_default().to_string_lossy().into_owned(),
    };
    check_name(&name)?;
    let folder = into.join(&name);
    let exists = fs::symlink_metadata(&folder).is_ok();
    if exists && !replace {
        return Err(InstallError::Exists { path: folder });
    }
    refuse_into_itself(&found, staging.path())?;
    // One level down: a repository may have any name.
    let ready = staging.path().join("ready");
    fs::create_dir(&ready).map_err(io(&ready))?;
    let ready = ready.join(&name);
    copy::copy(&found, &ready, bounds)?;
    validate(&ready).map_err(|why| InstallError::Refused { why })?;
    let record = InstallRecord {
        source: source.to_string(),
        reference,
        commit,
        hash: trust::content_hash(&ready).map_err(io(&ready))?,
        installed_at: chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true),
    };
    write_record(&ready, &record)?;
    let aside = staging.path().join("old");
    put_in_place(&ready, &folder, exists.then_some(aside.as_path()))?;
    Ok(Installed { name, folder, replaced: exists, record })
}

/// Gives what is ready its place. What has the place is moved aside, and back if that fails.
fn put_in_place(ready: &Path, folder: &Path, aside: Option<&Path>) -> Result<(), InstallError> {
    if let Some(aside) = aside {
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

#[cfg(test)]
mod tests {
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

        fn install(&self, source: &Source) -> Result<Installed, InstallError> {
            install(source, None, None, &self.into, false, &mut |_| Ok(()))
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
            let done =
                install(&source, None, Some(&name), &place.into, false, &mut |_| Ok(())).unwrap();
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
        let two = Path::new(".github/extensions/two");
        let done = install(
            &place.folder("src"),
            Some(two),
            Some("second"),
            &place.into,
            false,
            &mut |_| Ok(()),
        );
        assert_eq!(done.unwrap().name, "second");
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
            let error = install(&source, Some(path), None, &place.into, false, &mut |_| Ok(()));
            let error = error.unwrap_err();
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
        let mut refuse = |folder: &Path| {
            seen = folder.display().to_string();
            Err("it does not load".to_owned())
        };
        let error = install(&source, None, None, &place.into, true, &mut refuse).unwrap_err();
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
        let done = install(&source, None, None, &place.into, true, &mut |_| Ok(())).unwrap();
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
    fn more_than_the_limits_is_refused_and_leaves_nothing() {
        let place = Place::new();
        place.file("src/a/extension.mjs", "0123456789");
        let source = place.folder("src/a");
        let install = |bounds| {
            install_within(bounds, &source, None, None, &place.into, false, &mut |_| Ok(()))
        };
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
}
