//! Which folders have to be watched for given roots and files, and which events in them matter.
//!
//! All paths are compared after links were followed, because that is how the system names them in its
//! events.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::path::PathBuf;

use crate::discovery::ENTRY_FILES;

/// Packages are installed, not edited, and are many.
const PACKAGES: &str = "node_modules";

/// This folder is watched although its `extensions` exist, because it can be moved away as a whole,
/// which nobody below it is told. Other parents of roots are not: the user's and the session's folder
/// are written to all the time.
const PROJECT_FOLDER: &str = ".github";

/// What an event at some path means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing to us.
    Nothing,
    /// A file has changed.
    Content,
    /// Folders may have come or gone, so that others have to be watched.
    Structure,
}

/// The folders to watch, and what matters in them, as the disk was when this was made.
#[derive(Debug, Default)]
pub struct Plan {
    /// Folders to watch, each without what is below its sub-folders.
    pub folders: BTreeSet<PathBuf>,
    /// What cannot be watched, in words.
    pub problems: Vec<String>,
    /// Folders whose sub-folders are extensions.
    roots: BTreeSet<PathBuf>,
    /// The folders of extensions.
    extensions: BTreeSet<PathBuf>,
    /// Where something may come or go.
    structure: BTreeSet<PathBuf>,
    /// Files that were loaded, or were wanted and missing.
    files: BTreeSet<PathBuf>,
}

impl Plan {
    /// Looks at the disk.
    pub fn new(roots: &[PathBuf], files: &BTreeSet<PathBuf>) -> Self {
        let mut plan = Self::default();
        roots.iter().for_each(|root| plan.add_root(&absolute(root)));
        // Many files are in few folders.
        let mut folders: BTreeMap<PathBuf, Option<PathBuf>> = BTreeMap::new();
        for file in files.iter().map(|file| absolute(file)).filter(|file| !is_in_package(file)) {
            let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { continue };
            let real = folders.entry(folder.to_owned()).or_insert_with(|| real_folder(folder));
            match real.as_deref() {
                Some(real) => plan.add_file(real, name),
                None => plan.add_missing(&file),
            }
        }
        plan
    }

    /// What an event at this path means.
    pub fn meaning(&self, path: &Path) -> Meaning {
        if self.structure.contains(path) {
            return Meaning::Structure;
        }
        if self.files.contains(path) {
            return Meaning::Content;
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Meaning::Nothing;
        };
        if self.extensions.contains(folder) && ENTRY_FILES.iter().any(|entry| name == *entry) {
            return Meaning::Content;
        }
        // What was there before is in `structure`; this is for what is new.
        let is_new_folder = self.roots.contains(folder)
            && name != PACKAGES
            && path.symlink_metadata().is_ok_and(|new| new.is_dir() || new.is_symlink());
        if is_new_folder { Meaning::Structure } else { Meaning::Nothing }
    }

    /// Every path that matters, whether it exists or not.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        let entries = self
            .extensions
            .iter()
            .flat_map(|folder| ENTRY_FILES.iter().map(move |name| folder.join(name)));
        self.structure.iter().chain(&self.files).cloned().chain(entries)
    }

    fn add_root(&mut self, root: &Path) {
        if is_in_package(root) {
            let root = root.display();
            self.problems.push(format!("{root} is not watched: it is inside {PACKAGES}"));
            return;
        }
        let Some(real) = real_folder(root) else { return self.add_missing(root) };
        self.add_folder(&real);
        self.add_parent(root);
        if let Ok(entries) = std::fs::read_dir(&real) {
            entries.flatten().for_each(|entry| self.add_entry(&entry));
        }
        self.roots.insert(real);
    }

    /// The folder that a root is in, where more can happen to the root than the root's own watch tells.
    fn add_parent(&mut self, root: &Path) {
        let (Some(parent), Some(name)) = (root.parent(), root.file_name()) else { return };
        if !root.is_symlink() && parent.file_name() != Some(OsStr::new(PROJECT_FOLDER)) {
            return;
        }
        if let Some(parent) = real_folder(parent) {
            self.add_folder(&parent);
            self.structure.insert(parent.join(name));
        }
    }

    /// Something in a root: an extension if it is a folder, or a link to one.
    fn add_entry(&mut self, entry: &std::fs::DirEntry) {
        let Ok(kind) = entry.file_type() else { return };
        if entry.file_name() == PACKAGES {
            return;
        }
        let path = entry.path();
        if kind.is_dir() {
            self.add_extension(path);
        } else if kind.is_symlink() {
            match real_folder(&path) {
                Some(folder) if is_in_package(&folder) => {}
                Some(folder) => self.add_extension(folder),
                // It may lead to a folder one day, if it leads nowhere now.
                None if path.exists() => return,
                None => {}
            }
            self.structure.insert(path);
        }
    }

    fn add_extension(&mut self, folder: PathBuf) {
        self.add_folder(&folder);
        self.extensions.insert(folder);
    }

    fn add_folder(&mut self, folder: &Path) {
        self.folders.insert(folder.to_owned());
        self.structure.insert(folder.to_owned());
    }

    fn add_file(&mut self, folder: &Path, name: &OsStr) {
        if is_in_package(folder) {
            return;
        }
        let file = folder.join(name);
        self.add_folders_of(folder);
        if file.is_symlink()
            && let Ok(target) = std::fs::canonicalize(&file)
            && let Some(folder) = target.parent()
            && !is_in_package(folder)
        {
            self.add_folder(folder);
            self.files.insert(target);
        }
        self.files.insert(file);
    }

    /// The folder of a file, and those between it and the extension's: any may be moved or replaced.
    fn add_folders_of(&mut self, folder: &Path) {
        let is_extension = |folder: &&Path| self.extensions.contains(*folder);
        let inside = folder.ancestors().find(is_extension).map(Path::to_owned);
        let folders = folder.ancestors().take_while(|above| Some(*above) != inside.as_deref());
        // Outside every extension only the folder itself.
        let depth = if inside.is_some() { usize::MAX } else { 1 };
        folders.take(depth).for_each(|folder| self.add_folder(folder));
    }

    /// Something that does not exist: the nearest folder that does is watched for the next step to it.
    fn add_missing(&mut self, path: &Path) {
        let nearest = path
            .ancestors()
            .skip(1)
            .find_map(|above| Some((real_folder(above)?, path.strip_prefix(above).ok()?)));
        let Some((mut step, rest)) = nearest else { return };
        if is_in_package(&step) {
            return;
        }
        self.add_folder(&step);
        for name in rest.components() {
            step.push(name);
            self.structure.insert(step.clone());
        }
    }
}

/// The folder that a path leads to.
fn real_folder(path: &Path) -> Option<PathBuf> {
    std::fs::canonicalize(path).ok().filter(|folder| folder.is_dir())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn is_in_package(path: &Path) -> bool {
    path.components().any(|component| component.as_os_str() == PACKAGES)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn folders(plan: &Plan, below: &Path) -> Vec<String> {
        let name = |folder: &PathBuf| folder.strip_prefix(below).unwrap().display().to_string();
        plan.folders.iter().map(name).collect()
    }

    #[test]
    fn roots_their_sub_folders_and_the_folders_of_files_are_watched_and_no_packages() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        for folder in ["root/a/lib/deep", "root/a/other", "root/node_modules/p", "shared", "far"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        fs::write(base.join("root/README.md"), "").unwrap();
        symlink(base.join("far"), base.join("root/linked")).unwrap();
        let files = ["root/a/lib/deep/x.mjs", "shared/y.mjs", "root/a/node_modules/p/z.mjs"];
        let files = files.iter().map(|file| base.join(file)).collect();
        let plan = Plan::new(&[base.join("root")], &files);
        let expected = ["far", "root", "root/a", "root/a/lib", "root/a/lib/deep", "shared"];
        assert_eq!(folders(&plan, &base), expected);
    }

    #[test]
    fn only_entries_loaded_files_and_folders_of_extensions_matter() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("root/a/lib")).unwrap();
        fs::write(base.join("root/a/lib/used.mjs"), "").unwrap();
        let files = BTreeSet::from([base.join("root/a/lib/used.mjs")]);
        let plan = Plan::new(&[base.join("root")], &files);
        for folder in ["root/new", "root/node_modules"] {
            fs::create_dir(base.join(folder)).unwrap();
        }
        fs::write(base.join("root/file"), "").unwrap();
        let expected = [
            ("root", Meaning::Structure),
            ("root/a", Meaning::Structure),
            ("root/new", Meaning::Structure),
            ("root/node_modules", Meaning::Nothing),
            ("root/file", Meaning::Nothing),
            ("root/a/extension.mjs", Meaning::Content),
            ("root/a/extension.ts", Meaning::Content),
            ("root/a/notes.md", Meaning::Nothing),
            ("root/a/lib/used.mjs", Meaning::Content),
            ("root/a/lib/unused.mjs", Meaning::Nothing),
        ];
        for (path, meaning) in expected {
            assert_eq!(plan.meaning(&base.join(path)), meaning, "{path}");
        }
    }

    #[test]
    fn what_is_missing_is_awaited_in_the_nearest_folder_there_is() {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        let plan = Plan::new(&[base.join(".github/extensions")], &BTreeSet::new());
        assert_eq!(folders(&plan, &base), [""]);
        assert_eq!(plan.meaning(&base.join(".github")), Meaning::Structure);
        assert_eq!(plan.meaning(&base.join("src")), Meaning::Nothing);
        fs::create_dir_all(base.join(".github/extensions")).unwrap();
        let plan = Plan::new(&[base.join(".github/extensions")], &BTreeSet::new());
        assert_eq!(folders(&plan, &base), [".github", ".github/extensions"]);
    }
}
