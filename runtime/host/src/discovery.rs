//! Finding extensions: which folders there are, and which file each one starts from.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;
use walkdir::WalkDir;

/// The names an entry file may have, best first.
pub const ENTRY_FILES: [&str; 4] =
    ["extension.mjs", "extension.cjs", "extension.js", "extension.ts"];

/// Where an extension was found, in the order in which extensions are listed and loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In the user's own folder.
    User,
    /// In the repository.
    Project,
    /// In a folder named on the command line.
    Folder,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Folder => "folder",
        })
    }
}

/// An extension as it lies on disk.
#[derive(Debug, Clone)]
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
    /// The usual places for a working directory, and those named by hand.
    pub fn new(cwd: &Path, user_folders: &[PathBuf], named: &[PathBuf]) -> Self {
        let mut roots: Vec<_> =
            user_folders.iter().map(|folder| (Scope::User, folder.join("extensions"))).collect();
        roots.push((Scope::Project, project_root(cwd).join(".github").join("extensions")));
        roots.extend(named.iter().map(|folder| (Scope::Folder, folder.clone())));
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
    let mut found: Vec<Found> =
        places.roots.iter().flat_map(|(scope, root)| find_in(*scope, root)).collect();
    found.sort_by(|a, b| (a.scope, &a.name).cmp(&(b.scope, &b.name)));
    mark_shadowed(&mut found, trusted);
    found
}

fn find_in(scope: Scope, root: &Path) -> Vec<Found> {
    let entries =
        WalkDir::new(root).min_depth(1).max_depth(1).follow_links(true).sort_by_file_name();
    entries.into_iter().filter_map(|entry| examine(scope, entry)).collect()
}

/// One entry below a root; `None` if it is no extension.
fn examine(scope: Scope, entry: walkdir::Result<walkdir::DirEntry>) -> Option<Found> {
    let (path, problem) = match entry {
        Ok(entry) if entry.file_type().is_dir() => (entry.into_path(), None),
        Ok(_) => return None,
        // Only what is there but cannot be entered is worth a word: the root itself may be missing.
        Err(error) if error.depth() == 0 => return None,
        Err(error) => {
            let path = error.path()?.to_owned();
            let reason = match error.io_error() {
                Some(io) if io.kind() == std::io::ErrorKind::NotFound => {
                    "the folder is a symbolic link to nothing".to_owned()
                }
                Some(io) => format!("the folder cannot be read: {io}"),
                None => "the folder is a symbolic link into itself".to_owned(),
            };
            (path, Some(reason))
        }
    };
    let name = path.file_name()?.to_string_lossy().into_owned();
    let entry = match problem {
        Some(problem) => Err(problem),
        None => entry_file(&path)?,
    };
    Some(Found { scope, name, folder: path, entry, shadowed_by: None })
}

/// The entry file of a folder; `None` if the folder has nothing of that name.
fn entry_file(folder: &Path) -> Option<Result<PathBuf, String>> {
    if let Err(error) = std::fs::read_dir(folder) {
        return Some(Err(format!("the folder cannot be read: {error}")));
    }
    ENTRY_FILES.iter().map(|name| folder.join(name)).find_map(|path| {
        // Looked at without following links, so that a link to nothing is seen.
        let link = std::fs::symlink_metadata(&path).ok()?;
        Some(match std::fs::metadata(&path) {
            Ok(file) if file.is_file() => Ok(path),
            Ok(file) if file.is_dir() => Err(format!("{} is a folder, not a file", path.display())),
            Ok(_) => Err(format!("{} is not a regular file", path.display())),
            Err(_) if link.is_symlink() => {
                Err(format!("{} is a symbolic link to nothing", path.display()))
            }
            Err(error) => Err(format!("{} cannot be read: {error}", path.display())),
        })
    })
}

/// Of several extensions with one name the project's is used, then the folder's named first.
fn mark_shadowed(found: &mut [Found], trusted: bool) {
    let mut winners: HashMap<String, (Scope, PathBuf)> = HashMap::new();
    let runs = |extension: &&Found| trusted || extension.scope != Scope::Project;
    for extension in found.iter().filter(runs) {
        let better = match winners.get(&extension.name) {
            None => true,
            Some((scope, _)) => *scope == Scope::User && extension.scope != Scope::User,
        };
        if better {
            let winner = (extension.scope, extension.folder.clone());
            winners.insert(extension.name.clone(), winner);
        }
    }
    for extension in found {
        if let Some((scope, folder)) = winners.get(&extension.name)
            && *folder != extension.folder
            && (trusted || extension.scope != Scope::Project)
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
        let found = find_in(Scope::Folder, temp.path());
        let reasons: Vec<_> = found.iter().map(|f| f.entry.clone().unwrap_err()).collect();
        assert!(reasons[0].contains("extension.mjs is a symbolic link to nothing"), "{reasons:?}");
        assert!(reasons[1].contains("the folder is a symbolic link to nothing"), "{reasons:?}");
        assert!(reasons[2].contains("is a folder, not a file"), "{reasons:?}");
    }

    #[test]
    fn a_project_extension_shadows_the_users_of_the_same_name() {
        let temp = tempfile::tempdir().unwrap();
        fs::create_dir(temp.path().join(".git")).unwrap();
        let user = temp.path().join("home");
        add(&user.join("extensions"), "same", "extension.mjs");
        add(&temp.path().join(".github/extensions"), "same", "extension.mjs");
        let places = Places::new(temp.path(), &[user], &[]);
        let found = find(&places, true);
        assert_eq!(names(&found), ["user:same", "project:same"]);
        assert!(found[0].shadowed_by.as_ref().unwrap().starts_with("project:same"));
        assert_eq!(found[1].shadowed_by, None);
        // What is not trusted must not switch off what the user has.
        assert!(find(&places, false).iter().all(|found| found.shadowed_by.is_none()));
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
