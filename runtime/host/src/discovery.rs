//! Finding extensions: which folders there are, and which file each one starts from.

use std::collections::HashMap;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fmt;
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::Path;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;

/// The names an entry file may have, best first.
pub const ENTRY_FILES: [&str; 4] =
    ["extension.mjs", "extension.cjs", "extension.js", "extension.ts"];

/// Where an extension was found, in the order in which extensions are listed and loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In the user's own folder.
    User,
    /// In the repository.
    Project,
    /// In a folder named on the command line.
    Folder,
    /// In the session's own folder.
    Session,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Folder => "folder",
            Self::Session => "session",
        })
    }
}

/// An extension as it lies on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Where it was found.
    pub scope: Scope,
    /// The name of its folder.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Its entry file, or why it has none that can be used.
    pub entry: Result<PathBuf, String>,
    /// The extension of the same name that is used instead.
    pub shadowed_by: Option<String>,
}

impl Found {
    /// `scope:name`.
    pub fn id(&self) -> String {
        format!("{}:{}", self.scope, self.name)
    }
}

/// The places to look in.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// Folders whose sub-folders are extensions, with their scope.
    pub roots: Vec<(Scope, PathBuf)>,
}

impl Places {
    /// The usual places for a working directory, those named by hand, and the folder whose
    /// sub-folders are extensions of this session only.
    pub fn new(
        cwd: &Path,
        user_folders: &[PathBuf],
        named: &[PathBuf],
        session_extensions: Option<&Path>,
    ) -> Self {
        let mut roots: Vec<_> =
            user_folders.iter().map(|folder| (Scope::User, folder.join("extensions"))).collect();
        roots.push((Scope::Project, project_root(cwd).join(".github").join("extensions")));
        roots.extend(named.iter().map(|folder| (Scope::Folder, folder.clone())));
        roots.extend(session_extensions.map(|folder| (Scope::Session, folder.to_owned())));
        Self { roots }
    }
}

/// The root of the repository that a directory is in, or the directory itself.
pub fn project_root(cwd: &Path) -> &Path {
    // In a worktree or a submodule `.git` is a file.
    cwd.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(cwd)
}

/// Every extension in the given places, by scope and name. Those of a project that is not trusted
/// shadow nothing.
pub fn find(places: &Places, trusted: bool) -> Vec<Found> {
    find_where(places, &|found| trusted || found.scope != Scope::Project)
}

fn find_all(places: &Places) -> Vec<Found> {
    let mut found: Vec<Found> =
        places.roots.iter().flat_map(|(scope, root)| find_in(*scope, root)).collect();
    found.sort_by(|a, b| (a.scope, &a.name).cmp(&(b.scope, &b.name)));
    // A place that is named twice is one place.
    let mut seen = HashSet::new();
    found.retain(|one| seen.insert((one.scope, one.folder.clone())));
    found
}

/// Like [`find`], where whether an extension may run is asked for. What must not run shadows nothing, and is not shadowed. It
/// is asked only about those that share their name with another.
pub fn find_where(places: &Places, may_run: &dyn Fn(&Found) -> bool) -> Vec<Found> {
    let mut found = find_all(places);
    let mut names: HashMap<&str, usize> = HashMap::new();
    found.iter().for_each(|one| *names.entry(&one.name).or_default() += 1);
    let runs = found.iter().map(|one| names[one.name.as_str()] == 1 || may_run(one)).collect();
    mark_shadowed(&mut found, runs);
    found
}

/// Whether every place can be looked into, if it is there. Where one cannot, [`find`] finds nothing in it.
pub fn can_look_into(places: &Places) -> bool {
    places.roots.iter().all(|(_, root)| match std::fs::read_dir(root) {
        Ok(mut entries) => entries.all(|entry| entry.is_ok()),
        Err(error) => matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    })
}

/// One extension, by its folder; `None` if there is no entry file in it.
pub fn find_one(scope: Scope, folder: &Path) -> Option<Found> {
    let entry = entry_file(folder)?;
    let name = readable(folder.file_name()?);
    Some(Found { scope, name, folder: folder.to_owned(), entry, shadowed_by: None })
}

/// A folder's name as it can be shown anywhere. Names come from repositories that nobody trusts yet, and a
/// terminal obeys control characters.
fn readable(name: &OsStr) -> String {
    let is_obeyed =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut out = String::new();
    for c in name.to_string_lossy().chars() {
        if is_obeyed(c) { out.extend(c.escape_unicode()) } else { out.push(c) }
    }
    out
}

fn find_in(scope: Scope, root: &Path) -> Vec<Found> {
    // The root may be missing.
    let Ok(entries) = std::fs::read_dir(root) else { return Vec::new() };
    let mut entries: Vec<DirEntry> = entries.flatten().collect();
    entries.sort_by_key(DirEntry::file_name);
    entries.iter().filter_map(|entry| examine(scope, root, entry)).collect()
}

/// One entry below a root; `None` if it is no extension.
fn examine(scope: Scope, root: &Path, entry: &DirEntry) -> Option<Found> {
    // Known from the listing; only what a link leads to has to be looked up.
    let kind = entry.file_type().ok()?;
    let folder = entry.path();
    let problem = if kind.is_symlink() {
        follow(root, &folder)?
    } else if kind.is_dir() {
        None
    } else {
        return None;
    };
    let entry_file = match problem {
        Some(problem) => Err(problem),
        None => entry_file(&folder)?,
    };
    let name = readable(&entry.file_name());
    // Decisions about an extension are remembered by its path, which has to be text for that.
    let entry = match entry.file_name().to_str() {
        Some(_) => entry_file,
        None => Err("the name of the folder is not UTF-8".to_owned()),
    };
    Some(Found { scope, name, folder, entry, shadowed_by: None })
}

/// What is wrong with a link to a folder, if anything; `None` if it leads to something else.
fn follow(root: &Path, link: &Path) -> Option<Option<String>> {
    match std::fs::metadata(link) {
        Ok(target) if target.is_dir() => {
            let is_root = std::fs::canonicalize(link)
                .is_ok_and(|target| std::fs::canonicalize(root).is_ok_and(|root| root == target));
            Some(is_root.then(|| "the folder is a symbolic link into itself".to_owned()))
        }
        Ok(_) => None,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Some(Some("the folder is a symbolic link to nothing".to_owned()))
        }
        Err(error) => Some(Some(format!("the folder cannot be read: {error}"))),
    }
}

/// The entry file of a folder; `None` if the folder has nothing of that name.
fn entry_file(folder: &Path) -> Option<Result<PathBuf, String>> {
    if let Err(error) = std::fs::read_dir(folder) {
        return Some(Err(format!("the folder cannot be read: {error}")));
    }
    ENTRY_FILES.iter().map(|name| folder.join(name)).find_map(|path| {
        // Looked at without following links, so that a link to nothing is seen.
        let file = std::fs::symlink_metadata(&path).ok()?;
        if file.is_file() {
            return Some(Ok(path));
        }
        Some(match std::fs::metadata(&path) {
            Ok(file) if file.is_file() => Ok(path),
            Ok(file) if file.is_dir() => Err(format!("{} is a folder, not a file", path.display())),
            Ok(_) => Err(format!("{} is not a regular file", path.display())),
            Err(_) if file.is_symlink() => {
                Err(format!("{} is a symbolic link to nothing", path.display()))
            }
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        })
    })
}

/// Of several extensions with one name the project's is used, then the folder's named first, then
/// the user's. The session's comes last: whoever may write to the session's folder must not be able to
/// switch off what the person installed.
fn mark_shadowed(found: &mut [Found], runs: Vec<bool>) {
    let mut winners: HashMap<String, (Scope, PathBuf)> = HashMap::new();
    for (extension, _) in found.iter().zip(&runs).filter(|(_, runs)| **runs) {
        let better = match winners.get(&extension.name) {
            None => true,
            Some((scope, _)) => {
                *scope == Scope::User && matches!(extension.scope, Scope::Project | Scope::Folder)
            }
        };
        if better {
            let winner = (extension.scope, extension.folder.clone());
            winners.insert(extension.name.clone(), winner);
        }
    }
    for (extension, runs) in found.iter_mut().zip(runs) {
        if let Some((scope, folder)) = winners.get(&extension.name)
            && *folder != extension.folder
            && runs
        {
            extension.shadowed_by =
                Some(format!("{scope}:{} ({})", extension.name, folder.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn add(root: &Path, name: &str, file: &str) -> PathBuf {
        let folder = root.join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(file), "").unwrap();
        folder
    }

    fn names(found: &[Found]) -> Vec<String> {
        found.iter().map(Found::id).collect()
    }

    #[test]
    fn the_repository_root_is_found_from_below_and_in_a_worktree() {
        let temp = tempfile::tempdir().unwrap();
        let below = temp.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        assert_eq!(project_root(&below), below);
        fs::write(temp.path().join(".git"), "gitdir: elsewhere").unwrap();
        assert_eq!(project_root(&below), temp.path());
    }

    #[test]
    fn of_nested_repositories_the_innermost_counts() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join(".git")).unwrap();
        let submodule = temp.path().join("vendor/part");
        let below = submodule.join("src");
        fs::create_dir_all(&below).unwrap();
        assert_eq!(project_root(&below), temp.path());
        fs::write(submodule.join(".git"), "gitdir: ../../.git/modules/part").unwrap();
        assert_eq!(project_root(&below), submodule);
        assert_eq!(project_root(&temp.path().join("vendor")), temp.path());
    }

    #[test]
    fn a_thousand_folders_are_found_in_the_order_of_their_names() {
        let temp = tempfile::tempdir().unwrap();
        let expected: Vec<_> = (0..1000).map(|number| format!("folder:e{number:04}")).collect();
        for id in expected.iter().rev() {
            add(temp.path(), id.strip_prefix("folder:").unwrap(), "extension.mjs");
        }
        let places = Places { roots: vec![(Scope::Folder, temp.path().to_owned())] };
        let found = find(&places, true);
        assert_eq!(names(&found), expected);
        assert!(found.iter().all(|found| found.entry.is_ok() && found.shadowed_by.is_none()));
    }

    #[test]
    fn only_folders_with_an_entry_file_are_extensions_and_mjs_comes_first() {
        let temp = tempfile::tempdir().unwrap();
        add(temp.path(), "b", "extension.cjs");
        let a = add(temp.path(), "a", "extension.ts");
        fs::write(a.join("extension.mjs"), "").unwrap();
        add(temp.path(), "c", "index.mjs");
        fs::write(temp.path().join("extension.mjs"), "").unwrap();
        let found = find_in(Scope::Folder, temp.path());
        assert_eq!(names(&found), ["folder:a", "folder:b"]);
        assert!(found[0].entry.as_ref().unwrap().ends_with("a/extension.mjs"));
    }

    #[test]
    fn what_cannot_be_entered_is_listed_with_the_reason() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir_all(temp.path().join("folder-entry/extension.mjs")).unwrap();
        fs::create_dir_all(temp.path().join("dangling-entry")).unwrap();
        symlink("/no/where", temp.path().join("dangling-entry/extension.mjs")).unwrap();
        symlink("/no/where", temp.path().join("dangling-folder")).unwrap();
        symlink(temp.path(), temp.path().join("itself")).unwrap();
        symlink("loop", temp.path().join("loop")).unwrap();
        symlink("/dev/null", temp.path().join("no-folder")).unwrap();
        let found = find_in(Scope::Folder, temp.path());
        let reasons: Vec<_> = found.iter().map(|f| f.entry.clone().unwrap_err()).collect();
        assert!(reasons[0].contains("extension.mjs is a symbolic link to nothing"), "{reasons:?}");
        assert!(reasons[1].contains("the folder is a symbolic link to nothing"), "{reasons:?}");
        assert!(reasons[2].contains("is a folder, not a file"), "{reasons:?}");
        assert!(reasons[3].contains("the folder is a symbolic link into itself"), "{reasons:?}");
        assert!(reasons[4].contains("the folder cannot be read: "), "{reasons:?}");
        assert_eq!(reasons.len(), 5, "{reasons:?}");
    }

    #[test]
    fn a_project_extension_shadows_the_users_of_the_same_name() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join(".git")).unwrap();
        let user = temp.path().join("home");
        add(&user.join("extensions"), "same", "extension.mjs");
        add(&temp.path().join(".github/extensions"), "same", "extension.mjs");
        let places = Places::new(temp.path(), &[user], &[], None);
        let found = find(&places, true);
        assert_eq!(names(&found), ["user:same", "project:same"]);
        assert!(found[0].shadowed_by.as_ref().unwrap().starts_with("project:same"));
        assert_eq!(found[1].shadowed_by, None);
        // What is not trusted must not switch off what the user has.
        assert!(find(&places, false).iter().all(|found| found.shadowed_by.is_none()));
    }

    #[test]
    fn what_must_not_run_shadows_nothing_and_is_not_shadowed() {
        let temp = tempfile::tempdir().unwrap();
        let (user, folder) = (temp.path().join("home/extensions"), temp.path().join("folder"));
        add(&user, "same", "extension.mjs");
        add(&folder, "same", "extension.mjs");
        add(&folder, "alone", "extension.mjs");
        let places = Places { roots: vec![(Scope::User, user), (Scope::Folder, folder)] };
        let asked = std::cell::RefCell::new(Vec::new());
        let may_run = |found: &Found| {
            asked.borrow_mut().push(found.id());
            found.scope == Scope::User
        };
        assert!(find_where(&places, &may_run).iter().all(|found| found.shadowed_by.is_none()));
        assert_eq!(*asked.borrow(), ["user:same", "folder:same"]);
        let all = find_where(&places, &|_| true);
        let shadowed: Vec<_> = all.iter().filter(|found| found.shadowed_by.is_some()).collect();
        assert_eq!(shadowed.iter().map(|found| found.id()).collect::<Vec<_>>(), ["user:same"]);
    }

    #[test]
    fn a_folder_whose_name_is_not_text_is_listed_with_the_reason() {
        use std::os::unix::ffi::OsStrExt;
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join(OsStr::from_bytes(b"bad\xff"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("extension.mjs"), "").unwrap();
        let found = find_in(Scope::Folder, temp.path());
        assert_eq!(found[0].entry.clone().unwrap_err(), "the name of the folder is not UTF-8");
    }

    #[test]
    fn a_place_that_cannot_be_read_is_told_from_one_that_is_not_there() {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| Places { roots: vec![(Scope::User, temp.path().join(name))] };
        assert!(can_look_into(&at("missing")));
        assert!(can_look_into(&at(".")));
        symlink("loop", temp.path().join("loop")).unwrap();
        assert!(!can_look_into(&at("loop")));
    }

    #[test]
    fn an_extension_of_the_session_comes_last_and_shadows_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let (user, session) = (temp.path().join("home"), temp.path().join("session"));
        let project = temp.path().join(".github/extensions");
        fs::create_dir(temp.path().join(".git")).unwrap();
        add(&user.join("extensions"), "of-user", "extension.mjs");
        add(&project, "of-project", "extension.mjs");
        for name in ["of-user", "of-project", "own"] {
            add(&session, name, "extension.mjs");
        }
        let places = Places::new(temp.path(), &[user], &[], Some(&session));
        let shadowed = |trusted| -> Vec<String> {
            let found = find(&places, trusted);
            found.iter().filter(|found| found.shadowed_by.is_some()).map(Found::id).collect()
        };
        assert_eq!(
            names(&find(&places, true)),
            [
                "user:of-user",
                "project:of-project",
                "session:of-project",
                "session:of-user",
                "session:own",
            ]
        );
        assert_eq!(shadowed(true), ["session:of-project", "session:of-user"]);
        assert_eq!(shadowed(false), ["session:of-user"]);
    }

    #[test]
    fn symbolic_links_to_folders_are_followed() {
        let temp = tempfile::tempdir().unwrap();
        let real = add(&temp.path().join("elsewhere"), "real", "extension.mjs");
        fs::create_dir(temp.path().join("root")).unwrap();
        symlink(real, temp.path().join("root/linked")).unwrap();
        assert_eq!(names(&find_in(Scope::Folder, &temp.path().join("root"))), ["folder:linked"]);
    }
}
