//! Secrets that the user let an extension have, remembered outside of any repository.

use std::collections::BTreeMap;
use std::path::Path;
use std::path::PathBuf;

use crate::discovery::Scope;
use crate::extensions::Key;
use crate::extensions::id_of;
use crate::store::JsonStore;
use crate::store::StoreError;

/// The name of the file in the home folder.
pub const FILE_NAME: &str = "environment-approvals.json";

/// What was approved: by extension, the sets of names as the user saw them.
pub(crate) struct Approvals(JsonStore<BTreeMap<String, Vec<Vec<String>>>>);

impl Approvals {
    /// Those in a home folder.
    pub fn of(home: &Path) -> Self {
        Self(JsonStore::new(home, FILE_NAME))
    }

    /// Whether exactly these names were approved. A file that cannot be read approves nothing: the person is
    /// asked again.
    pub fn holds(&self, extension: &str, names: &[String]) -> bool {
        let remembered = self.0.read().unwrap_or_default();
        let sets = remembered.get(extension);
        sets.is_some_and(|sets| sets.iter().any(|set| *set == sorted(names)))
    }

    /// Whether anything was approved for an extension. A file that cannot be read approves nothing.
    pub fn has_any(&self, extension: &str) -> bool {
        self.0.read().unwrap_or_default().get(extension).is_some_and(|sets| !sets.is_empty())
    }

    /// Remembers that these names were approved together.
    pub fn remember(&self, extension: &str, names: &[String]) -> Result<(), StoreError> {
        self.0.change(|remembered| {
            let sets = remembered.entry(extension.to_owned()).or_default();
            if !sets.contains(&sorted(names)) {
                sets.push(sorted(names));
            }
        })
    }

    /// Forgets everything that was approved for an extension; whether there was anything.
    pub fn forget(&self, key: &Key) -> Result<bool, StoreError> {
        let (itself, before_folder) = (identity(key), format!("{} ", id_of(key)));
        let is_meant = |known: &String| {
            let folder = known.strip_prefix(&before_folder);
            *known == itself || folder.is_some_and(|folder| is_same(Path::new(folder), &key.2))
        };
        // Nothing is written for somebody who never asked.
        if !self.0.read()?.keys().any(is_meant) {
            return Ok(false);
        }
        self.0.change(|remembered| {
            let before = remembered.len();
            remembered.retain(|known, _| !is_meant(known));
            remembered.len() < before
        })
    }
}

/// Forgets which secrets an extension was let have, in whatever session; whether there were any. For the
/// time when it goes: what comes to its place later is another extension, and has to ask itself.
pub fn forget_secrets(
    home: &Path,
    scope: Scope,
    name: &str,
    folder: &Path,
) -> Result<bool, StoreError> {
    Approvals::of(home).forget(&(scope, name.to_owned(), folder.to_owned()))
}

/// An extension, told apart from those of the same name in other repositories.
pub(crate) fn identity(key: &Key) -> String {
    format!("{} {}", id_of(key), key.2.display())
}

/// Whether two paths name one entry of one folder. The folder may have been reached by another way, such as
/// a home that is a link; the entry need not be there any more.
fn is_same(one: &Path, other: &Path) -> bool {
    let parent = |path: &Path| -> Option<PathBuf> { std::fs::canonicalize(path.parent()?).ok() };
    one.file_name() == other.file_name()
        && parent(one).is_some_and(|parent_of_one| parent(other) == Some(parent_of_one))
}

fn sorted(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    names.sort();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn only_the_exact_set_of_names_is_approved() {
        let temp = tempfile::tempdir().unwrap();
        let approvals = Approvals::of(temp.path());
        assert!(!approvals.holds("a", &names(&["X"])));
        approvals.remember("a", &names(&["Y", "X"])).unwrap();
        assert!(approvals.holds("a", &names(&["X", "Y"])));
        assert!(!approvals.holds("a", &names(&["X"])));
        assert!(!approvals.holds("a", &names(&["X", "Y", "Z"])));
        assert!(!approvals.holds("b", &names(&["X", "Y"])));
    }
    #[test]
    fn what_is_forgotten_has_to_be_approved_anew_and_nothing_else_has() {
        let temp = tempfile::tempdir().unwrap();
        let home = temp.path().join("home");
        let key = |scope, name: &str, parent: &Path| (scope, name.to_owned(), parent.join(name));
        let gone = key(Scope::User, "a", &home.join("extensions"));
        let others = [
            key(Scope::User, "a", &temp.path().join("copilot/extensions")),
            key(Scope::Project, "a", &home.join("extensions")),
            key(Scope::User, "a b", &home.join("extensions")),
        ];
        let approvals = Approvals::of(&home);
        let x = names(&["X"]);
        assert!(!approvals.forget(&gone).unwrap());
        assert!(!home.exists());
        for key in others.iter().chain([&gone]) {
            approvals.remember(&identity(key), &x).unwrap();
        }
        approvals.remember(&identity(&gone), &names(&["Y"])).unwrap();
        assert!(forget_secrets(&home, gone.0, &gone.1, &gone.2).unwrap());
        assert!(!approvals.holds(&identity(&gone), &x));
        assert!(!approvals.holds(&identity(&gone), &names(&["Y"])));
        assert!(others.iter().all(|other| approvals.holds(&identity(other), &x)));
        assert!(!approvals.forget(&gone).unwrap());
    }

    #[test]
    fn a_home_that_is_reached_by_another_way_is_the_same() {
        let temp = tempfile::tempdir().unwrap();
        let (home, link) = (temp.path().join("home"), temp.path().join("link"));
        std::fs::create_dir_all(home.join("extensions")).unwrap();
        std::os::unix::fs::symlink(&home, &link).unwrap();
        let of = |home: &Path| (Scope::User, "a".to_owned(), home.join("extensions/a"));
        let approvals = Approvals::of(&home);
        approvals.remember(&identity(&of(&link)), &names(&["X"])).unwrap();
        assert!(approvals.forget(&of(&home)).unwrap());
        assert!(!approvals.holds(&identity(&of(&link)), &names(&["X"])));
    }

    #[test]
    fn a_damaged_file_is_said_and_not_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        std::fs::write(temp.path().join(FILE_NAME), "{").unwrap();
        let key = (Scope::User, "a".to_owned(), temp.path().join("extensions/a"));
        Approvals::of(temp.path()).forget(&key).unwrap_err();
        assert_eq!(std::fs::read_to_string(temp.path().join(FILE_NAME)).unwrap(), "{");
    }
}
